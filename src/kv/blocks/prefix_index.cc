#include "kv/blocks/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace kvasir::kv {

PrefixIndex::PrefixIndex(SipKey key, std::int32_t num_groups, std::int32_t expected_nodes,
                         std::int32_t hash_bits)
    : key_(key),
      num_groups_(num_groups),
      hash_mask_(~std::uint64_t{0} >> (64 - hash_bits)),
      buckets_(std::bit_ceil(static_cast<std::size_t>(expected_nodes) * 2 + 1), kNoPrefixNode) {
  CHECK(hash_bits >= 1 && hash_bits <= 64);
  nodes_.reserve(static_cast<std::size_t>(expected_nodes));
  blocks_.reserve(static_cast<std::size_t>(expected_nodes) * static_cast<std::size_t>(num_groups));
}

PrefixNodeId PrefixIndex::open(std::string_view cache_namespace, std::uint64_t policy_fingerprint) {
  const auto [root, is_new] = roots_.try_emplace({policy_fingerprint, std::string(cache_namespace)},
                                                 kNoPrefixNode);
  if (is_new) {
    root->second = new_node();
    Node& node = at(root->second);
    node.root = root;
    SipHash hash({key_.k0 ^ policy_fingerprint, key_.k1});
    node.hash = hash.digest(std::as_bytes(std::span(cache_namespace)));
  }
  ++at(root->second).num_holds;
  return root->second;
}

std::optional<PrefixNodeId> PrefixIndex::find_child(PrefixNodeId parent, BlockTokens tokens) const {
  const std::uint64_t hash = child_hash(parent, tokens);
  PrefixNodeId id = buckets_[hash & (buckets_.size() - 1)];
  for (; id != kNoPrefixNode; id = at(id).next_in_bucket) {
    const Node& node = at(id);
    if (node.hash == hash && node.parent == parent && std::ranges::equal(node.tokens, tokens)) return id;
  }
  return std::nullopt;
}

PrefixNodeId PrefixIndex::advance(PrefixNodeId cursor, BlockTokens tokens) {
  if (const auto known = find_child(cursor, tokens)) return move(cursor, *known);
  const PrefixNodeId id = new_node();
  Node& node = at(id);
  node.parent = cursor;  // the cursor's hold becomes the child's hold on its parent
  node.hash = child_hash(cursor, tokens);
  std::ranges::copy(tokens, node.tokens.begin());
  node.num_holds = 1;
  node.next_in_bucket = bucket(node.hash);
  bucket(node.hash) = id;
  return id;
}

PrefixNodeId PrefixIndex::move(PrefixNodeId cursor, PrefixNodeId to) {
  ++at(to).num_holds;
  release(cursor);
  return to;
}

// A node that nothing needs any more lets go of its parent, and so on upwards.
void PrefixIndex::release(PrefixNodeId cursor) {
  for (PrefixNodeId id = cursor; id != kNoPrefixNode;) {
    Node& node = at(id);
    CHECK(node.num_holds > 0);
    if (--node.num_holds > 0) return;
    const PrefixNodeId parent = node.parent;
    if (parent == kNoPrefixNode) {
      roots_.erase(node.root);
    } else {
      unlink_from_bucket(id);
    }
    node.next_in_bucket = first_dead_;
    first_dead_ = id;
    --num_nodes_;
    id = parent;
  }
}

void PrefixIndex::set_block(PrefixNodeId node, std::int32_t group, BlockId block) {
  BlockId& entry = blocks_[block_index(node, group)];
  CHECK(entry == kHole && block != kHole);
  entry = block;
  ++at(node).num_holds;
}

void PrefixIndex::remove_block(PrefixNodeId node, std::int32_t group) {
  BlockId& entry = blocks_[block_index(node, group)];
  CHECK(entry != kHole);
  entry = kHole;
  release(node);
}

std::uint64_t PrefixIndex::child_hash(PrefixNodeId parent, BlockTokens tokens) const {
  struct {
    std::uint64_t parent_hash;
    std::array<TokenId, kTokensPerBlock> tokens;
  } message{at(parent).hash, {}};
  static_assert(sizeof(message) == sizeof(message.parent_hash) + sizeof(message.tokens),
                "no padding is hashed");
  std::ranges::copy(tokens, message.tokens.begin());
  return SipHash(key_).digest(std::as_bytes(std::span(&message, 1))) & hash_mask_;
}

PrefixNodeId PrefixIndex::new_node() {
  ++num_nodes_;
  if (first_dead_ != kNoPrefixNode) {
    const PrefixNodeId id = first_dead_;
    first_dead_ = at(id).next_in_bucket;
    at(id) = Node{};
    return id;
  }
  nodes_.emplace_back();
  blocks_.insert(blocks_.end(), static_cast<std::size_t>(num_groups_), kHole);
  return PrefixNodeId{static_cast<std::int32_t>(nodes_.size()) - 1};
}

void PrefixIndex::unlink_from_bucket(PrefixNodeId id) {
  PrefixNodeId* link = &bucket(at(id).hash);
  while (*link != id) link = &at(*link).next_in_bucket;
  *link = at(id).next_in_bucket;
}

}  // namespace kvasir::kv
