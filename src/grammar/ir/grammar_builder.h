// Puts a grammar together from parts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/ir/grammar.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

// A part of a grammar: what may stand at a place. Neighbours that are plain text become one terminal. The automaton of a
// part is made where it is used; what calls itself, or is long and used often, is a rule.
struct Part {
  enum class Kind : std::uint8_t { kTerminal, kRule, kToken, kSequence, kChoice, kStar };
  Kind kind = Kind::kTerminal;
  std::uint32_t value = 0;  // the rule or the token
  Terminal terminal = {.term = kEmptyText, .form = TextForm::kPlain};
  std::vector<Part> children = {};
};

// Thread safety: none.
class GrammarBuilder {
 public:
  // The store outlives this.
  explicit GrammarBuilder(TermStore& store) : store_(store) {}

  static Part text(TermId term) { return {.terminal = {term, TextForm::kPlain}}; }
  static Part text(Terminal terminal) { return {.terminal = terminal}; }
  // The plain text with a mark; it stays a terminal of its own. Requires: a plain part that has no empty text.
  static Part marked(Part part, const TextMark& mark) {
    part.terminal.mark = mark;
    return part;
  }
  static Part token(TokenId token) { return {.kind = Part::Kind::kToken, .value = static_cast<std::uint32_t>(token)}; }
  static Part rule(RuleId rule) { return {.kind = Part::Kind::kRule, .value = rule}; }

  // A rule whose texts come later; rules that call each other begin so.
  RuleId declare(std::string name);
  void define(RuleId rule, const Part& part);

  Part sequence(std::span<const Part> parts);
  // In a sequence of the two the end of the first and the begin of the second are terminals of their own.
  bool stay_apart(const Part& first, const Part& second) const;
  Part choice(std::span<const Part> parts);
  // Requires: min <= max; the part has no empty text. A star for what has no upper bound, so that a place behind an
  // element is one whatever came before; a counter for the others.
  Part repeat(const Part& part, std::uint32_t min, std::uint32_t max);

  // An automaton by hand: a rule begins at start_of(), and ends at a node that is final.
  NodeId start_of(RuleId rule) const { return grammar_.rules[rule].start; }
  NodeId add_node(bool is_final = false);
  void add_edges(NodeId from, const Part& part, NodeId to);
  std::size_t num_nodes() const { return grammar_.nodes.size(); }

  // By rule so far, whether it derives a text.
  std::vector<bool> rules_with_text() const;

  // The finished grammar, without what derives no text and what the start does not reach. Empty: the start derives
  // no text.
  Grammar finish(RuleId start);

 private:
  bool begins_terminal(TermId before, TermId term) const;
  void set_loop(NodeId node, const Loop& loop);
  Part counted(const Part& part, std::uint32_t min, std::uint32_t max);
  static std::uint64_t key_of(const Terminal& terminal);
  TerminalId terminal(const Terminal& terminal);
  // A terminal's edges in an automaton, where none has the empty text.
  struct TerminalEdges {
    bool may_be_empty = false;
    bool has_text = false;
    TerminalId terminal = 0;
  };
  TerminalEdges edges_of(const Terminal& wanted);

  TermStore& store_;
  Grammar grammar_;
  std::unordered_map<std::uint64_t, TerminalId> terminals_;  // by key_of()
  std::unordered_map<TermId, TerminalEdges> nullable_;       // plain texts that may be empty
};

}  // namespace kvasir::grammar
