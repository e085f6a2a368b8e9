// A grammar as automata that call each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/regex/byte_states.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

using NodeId = std::uint32_t;      // of an automaton
using RuleId = std::uint32_t;
using TerminalId = std::uint32_t;  // place in Grammar::terminals

// One step of an automaton.
struct Edge {
  enum class Kind : std::uint8_t {
    kTerminal,  // a text of terminals[value]
    kRule,      // a text of rules[value]
    kToken,     // the token of the id `value`, whatever its text
    kSkip,      // nothing
  };
  Kind kind = Kind::kSkip;
  std::uint32_t value = 0;
  NodeId target = 0;
};

// A place in an automaton.
struct Node {
  bool is_final = false;
  std::vector<Edge> edges;
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
