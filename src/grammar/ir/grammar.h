// A grammar as automata that call each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/ir/edge_list.h"
#include "grammar/regex/byte_states.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// A place in an automaton.
struct Node {
  bool is_final = false;
  EdgeList edges;
};

// A node with a counter: the rule, min to max times, then `exit`. Requires: the rule has no empty text.
struct Loop {
  RuleId rule = 0;
  std::uint32_t min = 0;
  std::uint32_t max = kUnbounded;
  NodeId exit = 0;
};

struct Rule {
  NodeId start = 0;
  std::string name;  // for messages
};

// Requires: no terminal has the empty text; nodes_[i] is a loop or has edges.
struct Grammar {
  std::vector<Terminal> terminals;
  std::vector<Node> nodes;
  std::vector<Loop> loops;           // by loop_of
  std::vector<std::int32_t> loop_of;  // by node: place in loops, -1 when it has edges
  std::vector<Rule> rules;
  RuleId start = 0;
};

}  // namespace kvasir::grammar
