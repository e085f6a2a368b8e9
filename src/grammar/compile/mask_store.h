// Which tokens may follow a place of a grammar; each part of an answer is computed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/compile/row_store.h"
#include "grammar/regex/byte_states.h"
#include "grammar/vocabulary.h"

namespace kvasir::grammar {

// Tokens are found in two parts: those that end inside a terminal depend on its state alone, and those in which it
// ends go on with what the row behind it waits for, from the places of the trie where it may end.
//
// Thread safety: none.
class MaskStore {
 public:
  // All outlive this.
  MaskStore(const Vocabulary& vocabulary, ByteStates& states, RowStore& rows);

  // Adds the tokens that may follow inside a terminal that `row` waits for.
  void add(RowId row, TerminalId terminal, ByteStateId state, TokenMask& mask);
  // Adds the tokens that may follow a row.
  void add(RowId row, TokenMask& mask);

 private:
  using NodeSetId = std::uint32_t;  // nodes of the trie, none below another; 0 is the root alone
  static constexpr NodeSetId kRoot = 0;
  static constexpr NodeSetId kNoNodes = 1;

  // Tokens, and the nodes in whose subtrees others go on behind the terminal.
  struct Walk {
    CharacterClasses classes = 0;  // all tokens of these
    std::vector<std::pair<std::uint32_t, std::uint32_t>> tokens;  // and of these ranges of Vocabulary::ordered()
    NodeSetId ends = kNoNodes;
  };

  NodeSetId intern(std::vector<Vocabulary::NodeId> nodes);
  const Walk& walk(NodeSetId nodes, ByteStateId state);
  Walk compute_walk(NodeSetId nodes, ByteStateId state);
  void walk_subtree(Vocabulary::NodeId top, ByteStateId state, bool has_classes, Walk& walk,
                    std::vector<Vocabulary::NodeId>& ends);
  void add_walk(const Walk& walk, TokenMask& mask);
  // Adds the tokens that go on from these nodes with what the row waits for.
  void add_behind(RowId row, NodeSetId nodes, TokenMask& mask);
  const TokenMask& tokens_of(CharacterClasses classes);

  const Vocabulary& vocabulary_;
  ByteStates& states_;
  RowStore& rows_;
  std::vector<std::vector<Vocabulary::NodeId>> node_sets_;
  std::map<std::vector<Vocabulary::NodeId>, NodeSetId> found_;
  std::unordered_map<std::uint64_t, Walk> walks_;  // by nodes << 32 | state
  std::unordered_map<CharacterClasses, TokenMask> tokens_of_;
  std::vector<ByteStateId> path_;  // states by depth, of the walk at hand
};

}  // namespace kvasir::grammar
