// From token contents to the blocks that already hold their KV.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/blocks/block.h"
#include "kv/blocks/siphash.h"
#include "kv/cells/cell.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// A forest of nodes, one root per (namespace, policy fingerprint). A node stands for 16 tokens behind one
// exact prefix and names, per layer group, the block that holds their KV. Nodes are found through a keyed
// hash chain over (namespace, fingerprint, parent's hash, 16 token ids); a find is confirmed by comparing the
// tokens and the parent's identity, so a hash collision costs a comparison and never gives away a wrong
// block.
//
// A node lives while something needs it: a block it names, a child, or a cursor (a sequence that will extend
// it). The blocks themselves belong to the BlockPool; when it reuses one, remove_block() must follow.
//
// Thread safety: none; the engine thread is the only caller.
class PrefixIndex {
 public:
  using BlockTokens = std::span<const TokenId, kTokensPerBlock>;

  // `expected_nodes` sizes the hash table once. `hash_bits` below 64 is for tests: collisions must change
  // nothing.
  PrefixIndex(SipKey key, std::int32_t num_groups, std::int32_t expected_nodes, std::int32_t hash_bits = 64);

  // A cursor on the root of a namespace. The caller owes a release().
  PrefixNodeId open(std::string_view cache_namespace, std::uint64_t policy_fingerprint);
  // The node of `tokens` behind `parent`, if known. Takes no hold on it.
  std::optional<PrefixNodeId> find_child(PrefixNodeId parent, BlockTokens tokens) const;
  // Moves a cursor to the child for `tokens`, which is made if it is new. Consumes the hold on `cursor`.
  PrefixNodeId advance(PrefixNodeId cursor, BlockTokens tokens);
  // Moves a cursor to any node. Consumes the hold on `cursor`.
  PrefixNodeId move(PrefixNodeId cursor, PrefixNodeId to);
  void release(PrefixNodeId cursor);

  // kNoPrefixNode for a root.
  PrefixNodeId parent(PrefixNodeId node) const { return at(node).parent; }
  // kHole when the group's KV for this node is not cached.
  BlockId block(PrefixNodeId node, std::int32_t group) const { return blocks_[block_index(node, group)]; }
  // Requires: the node has no block for the group yet.
  void set_block(PrefixNodeId node, std::int32_t group, BlockId block);
  // The pool has taken the node's block for something else.
  void remove_block(PrefixNodeId node, std::int32_t group);

  // Nodes alive, roots included; for tests and reports.
  std::int32_t num_nodes() const { return num_nodes_; }

 private:
  using RootMap = std::map<std::pair<std::uint64_t, std::string>, PrefixNodeId, std::less<>>;

  struct Node {
    std::uint64_t hash = 0;
    PrefixNodeId parent = kNoPrefixNode;          // none: a root
    PrefixNodeId next_in_bucket = kNoPrefixNode;  // of a dead node: the next dead one
    std::int32_t num_holds = 0;                   // blocks + children + cursors
    RootMap::iterator root;                       // of a root only
    std::array<TokenId, kTokensPerBlock> tokens{};
  };

  Node& at(PrefixNodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  const Node& at(PrefixNodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::size_t block_index(PrefixNodeId node, std::int32_t group) const {
    return static_cast<std::size_t>(node) * static_cast<std::size_t>(num_groups_) +
           static_cast<std::size_t>(group);
  }
  PrefixNodeId& bucket(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  std::uint64_t child_hash(PrefixNodeId parent, BlockTokens tokens) const;
  PrefixNodeId new_node();
  void unlink_from_bucket(PrefixNodeId id);

  const SipKey key_;
  const std::int32_t num_groups_;
  const std::uint64_t hash_mask_;
  RootMap roots_;
  std::vector<Node> nodes_;
  std::vector<BlockId> blocks_;        // [node][group]
  std::vector<PrefixNodeId> buckets_;  // a power of two; heads of chains through next_in_bucket
  PrefixNodeId first_dead_ = kNoPrefixNode;
  std::int32_t num_nodes_ = 0;
};

}  // namespace kvasir::kv
