#include "grammar/compile/mask_store.h"

#include <utility>

namespace kvasir::grammar {

MaskStore::MaskStore(const Vocabulary& vocabulary, ByteStates& states, RowStore& rows)
    : vocabulary_(vocabulary), states_(states), rows_(rows), path_(vocabulary.longest_token_bytes() + 1) {
  intern({0});
  intern({});
}

MaskStore::NodeSetId MaskStore::intern(std::vector<Vocabulary::NodeId> nodes) {
  const auto [found, is_new] = found_.try_emplace(nodes, static_cast<NodeSetId>(node_sets_.size()));
  if (is_new) node_sets_.push_back(std::move(nodes));
  return found->second;
}

void MaskStore::walk_subtree(Vocabulary::NodeId top, ByteStateId state, bool has_classes, Walk& walk,
                             std::vector<Vocabulary::NodeId>& ends) {
  const auto add_tokens = [&](std::pair<std::uint32_t, std::uint32_t> range) {
    if (range.first == range.second) return;
    if (!walk.tokens.empty() && walk.tokens.back().second == range.first) {
      walk.tokens.back().second = range.second;
    } else {
      walk.tokens.push_back(range);
    }
  };
  path_[vocabulary_.depth(top)] = state;
  const Vocabulary::NodeId end = vocabulary_.skip(top);
  for (Vocabulary::NodeId node = top + 1; node < end;) {
    const std::size_t depth = vocabulary_.depth(node);
    const ByteStateId from = path_[depth - 1];
    const ByteStateId next = states_.next(from, vocabulary_.byte(node));
    if (next == kDeadState) {
      node = vocabulary_.skip(node);
      continue;
    }
    // A subtree of characters that all lead back holds only tokens that end inside.
    if (next == from && !states_.is_accepting(next) &&
        (vocabulary_.classes_within(node) & ~states_.loops(next)) == 0) {
      if (!has_classes || next != state) add_tokens(vocabulary_.range_within(node));
      node = vocabulary_.skip(node);
      continue;
    }
    add_tokens(vocabulary_.range_at(node));
    if (states_.is_accepting(next) && vocabulary_.has_children(node)) ends.push_back(node);
    path_[depth] = next;
    ++node;
  }
}

MaskStore::Walk MaskStore::compute_walk(NodeSetId nodes, ByteStateId state) {
  Walk walk;
  std::vector<Vocabulary::NodeId> ends;
  const bool has_classes = nodes == kRoot && states_.loops(state) != 0;
  if (has_classes) walk.classes = states_.loops(state);
  const std::vector<Vocabulary::NodeId> tops = node_sets_[nodes];
  for (const Vocabulary::NodeId top : tops) walk_subtree(top, state, has_classes, walk, ends);
  walk.ends = intern(std::move(ends));
  return walk;
}

const MaskStore::Walk& MaskStore::walk(NodeSetId nodes, ByteStateId state) {
  state = states_.clamped(state, static_cast<std::uint32_t>(vocabulary_.longest_token_bytes()));
  const std::uint64_t key = std::uint64_t{nodes} << 32 | state;
  const auto found = walks_.find(key);
  return found != walks_.end() ? found->second : walks_.emplace(key, compute_walk(nodes, state)).first->second;
}

const TokenMask& MaskStore::tokens_of(CharacterClasses classes) {
  const auto [found, is_new] = tokens_of_.try_emplace(classes);
  if (is_new) {
    found->second = TokenMask(vocabulary_.num_tokens());
    vocabulary_.add_tokens_of(classes, found->second);
  }
  return found->second;
}

void MaskStore::add_walk(const Walk& walk, TokenMask& mask) {
  if (walk.classes != 0) mask.add(tokens_of(walk.classes));
  for (const auto& [begin, end] : walk.tokens) {
    for (const TokenId token : vocabulary_.ordered(begin, end)) mask.set(token);
  }
}

void MaskStore::add_behind(RowId row, NodeSetId nodes, TokenMask& mask) {
  if (nodes == kNoNodes) return;
  const std::vector<RowStore::Wanted> wanted(rows_.wanted(row).begin(), rows_.wanted(row).end());
  for (const RowStore::Wanted& next : wanted) {
    const Walk& found = walk(nodes, next.state);
    add_walk(found, mask);
    const NodeSetId ends = found.ends;
    if (ends != kNoNodes) add_behind(rows_.advance(row, next.terminal), ends, mask);
  }
}

void MaskStore::add(RowId row, TerminalId terminal, ByteStateId state, TokenMask& mask) {
  const Walk& found = walk(kRoot, state);
  add_walk(found, mask);
  const NodeSetId ends = found.ends;
  if (ends != kNoNodes) add_behind(rows_.advance(row, terminal), ends, mask);
}

void MaskStore::add(RowId row, TokenMask& mask) {
  for (const TokenId token : rows_.tokens(row)) mask.set(token);
  const std::vector<RowStore::Wanted> wanted(rows_.wanted(row).begin(), rows_.wanted(row).end());
  for (const RowStore::Wanted& next : wanted) add(row, next.terminal, next.state, mask);
}

}  // namespace kvasir::grammar
