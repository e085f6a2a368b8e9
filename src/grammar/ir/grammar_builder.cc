#include "grammar/ir/grammar_builder.h"

#include <array>
#include <utility>

#include "grammar/ir/prune.h"

namespace kvasir::grammar {
namespace {

bool is_plain(const Part& part) {
  return part.kind == Part::Kind::kTerminal && part.terminal.form == TextForm::kPlain && part.terminal.mark == TextMark();
}

}  // namespace

RuleId GrammarBuilder::declare(std::string name) {
  const NodeId start = add_node();
  grammar_.rules.push_back({.start = start, .name = std::move(name)});
  return static_cast<RuleId>(grammar_.rules.size() - 1);
}

void GrammarBuilder::define(RuleId rule, const Part& part) {
  add_edges(grammar_.rules[rule].start, part, add_node(/*is_final=*/true));
}

NodeId GrammarBuilder::add_node(bool is_final) {
  grammar_.nodes.push_back({.is_final = is_final, .edges = {}});
  grammar_.loop_of.push_back(-1);
  return static_cast<NodeId>(grammar_.nodes.size() - 1);
}

// All of a terminal in one number: the same text with another mark is another terminal.
std::uint64_t GrammarBuilder::key_of(const Terminal& terminal) {
  const TextMark& mark = terminal.mark;
  std::uint64_t key = mark.group;
  key = key << 2 | static_cast<std::uint8_t>(mark.kind);
  key = key << 1 | (mark.is_outer ? 1 : 0);
  key = key << 1 | (mark.may_run_out ? 1 : 0);
  key = key << 8 | static_cast<std::uint8_t>(terminal.form);
  return key << 32 | terminal.term;
}

TerminalId GrammarBuilder::terminal(const Terminal& terminal) {
  const auto [found, is_new] = terminals_.try_emplace(key_of(terminal), static_cast<TerminalId>(grammar_.terminals.size()));
  if (is_new) grammar_.terminals.push_back(terminal);
  return found->second;
}

GrammarBuilder::TerminalEdges GrammarBuilder::edges_of(const Terminal& wanted) {
  if (wanted.form == TextForm::kPlain && store_.is_nullable(wanted.term)) {
    const auto known = nullable_.find(wanted.term);
    if (known != nullable_.end()) return known->second;
    const TermId rest = store_.without_empty_text(wanted.term);
    TerminalEdges edges = {.may_be_empty = true, .has_text = rest != kNothing};
    if (edges.has_text) edges.terminal = terminal({rest, TextForm::kPlain});
    nullable_.emplace(wanted.term, edges);
    return edges;
  }
  if (wanted.term == kNothing) return {};
  return {.has_text = true, .terminal = terminal(wanted)};
}

void GrammarBuilder::add_edges(NodeId from, const Part& part, NodeId to) {
  switch (part.kind) {
    case Part::Kind::kToken:
      grammar_.nodes[from].edges.push_back({.kind = Edge::Kind::kToken, .value = part.value, .target = to});
      return;
    case Part::Kind::kRule:
      grammar_.nodes[from].edges.push_back({.kind = Edge::Kind::kRule, .value = part.value, .target = to});
      return;
    case Part::Kind::kSequence:
      for (std::size_t i = 0; i < part.children.size(); ++i) {
        const NodeId next = i + 1 == part.children.size() ? to : add_node();
        add_edges(from, part.children[i], next);
        from = next;
      }
      return;
    case Part::Kind::kChoice:
      for (const Part& child : part.children) add_edges(from, child, to);
      return;
    case Part::Kind::kStar: {
      const NodeId loop = add_node();
      grammar_.nodes[from].edges.push_back({.kind = Edge::Kind::kSkip, .value = 0, .target = loop});
      add_edges(loop, part.children[0], loop);
      grammar_.nodes[loop].edges.push_back({.kind = Edge::Kind::kSkip, .value = 0, .target = to});
      return;
    }
    case Part::Kind::kTerminal:
      break;
  }
  const TerminalEdges wanted = edges_of(part.terminal);
  EdgeList& edges = grammar_.nodes[from].edges;
  if (wanted.may_be_empty) edges.push_back({.kind = Edge::Kind::kSkip, .value = 0, .target = to});
  if (wanted.has_text) edges.push_back({.kind = Edge::Kind::kTerminal, .value = wanted.terminal, .target = to});
}

// Blanks before a word stay a terminal of their own: their masks serve before every word.
bool GrammarBuilder::begins_terminal(TermId before, TermId term) const {
  while (store_.kind(before) == TermKind::kConcat) before = store_.children(before)[1];
  const TermKind kind = store_.kind(term);
  return store_.is_nullable(before) && (kind == TermKind::kConcat || kind == TermKind::kWord);
}

bool GrammarBuilder::stay_apart(const Part& first, const Part& second) const {
  const Part& end = first.kind == Part::Kind::kSequence ? first.children.back() : first;
  const Part& begin = second.kind == Part::Kind::kSequence ? second.children.front() : second;
  return !is_plain(end) || !is_plain(begin) || begins_terminal(end.terminal.term, begin.terminal.term);
}

Part GrammarBuilder::sequence(std::span<const Part> parts) {
  std::vector<Part> fused;
  std::vector<TermId> run;  // neighbours that are plain text
  const auto end_run = [&] {
    if (const TermId term = store_.concat(run); term != kEmptyText) fused.push_back(text(term));
    run.clear();
  };
  const auto add = [&](const Part& part) {
    if (!is_plain(part)) {
      end_run();
      fused.push_back(part);
      return;
    }
    const TermId term = part.terminal.term;
    if (term == kEmptyText) return;
    if (!run.empty() && begins_terminal(run.back(), term)) end_run();
    run.push_back(term);
  };
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::kSequence) {
      for (const Part& child : part.children) add(child);
    } else {
      add(part);
    }
  }
  end_run();
  if (fused.empty()) return text(kEmptyText);
  if (fused.size() == 1) return fused[0];
  return {.kind = Part::Kind::kSequence, .children = std::move(fused)};
}

Part GrammarBuilder::choice(std::span<const Part> parts) {
  std::vector<TermId> plain;
  std::vector<Part> others;
  const auto add = [&](const Part& part) {
    if (is_plain(part)) {
      plain.push_back(part.terminal.term);
    } else {
      others.push_back(part);
    }
  };
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::kChoice) {
      for (const Part& child : part.children) add(child);
    } else {
      add(part);
    }
  }
  const TermId texts = store_.any_of(std::move(plain));
  if (others.empty()) return text(texts);
  if (texts != kNothing) others.push_back(text(texts));
  if (others.size() == 1) return others[0];
  return {.kind = Part::Kind::kChoice, .children = std::move(others)};
}

Part GrammarBuilder::repeat(const Part& part, std::uint32_t min, std::uint32_t max) {
  if (is_plain(part)) return text(store_.repeat(part.terminal.term, min, max));
  if (max != kUnbounded) return counted(part, min, max);
  const Part star = {.kind = Part::Kind::kStar, .children = {part}};
  if (min == 0) return star;
  return sequence(std::array{min == 1 ? part : counted(part, min, min), star});
}

Part GrammarBuilder::counted(const Part& part, std::uint32_t min, std::uint32_t max) {
  const RuleId result = declare({});
  const RuleId repeated = declare({});
  define(repeated, part);
  const NodeId exit = add_node(/*is_final=*/true);
  set_loop(start_of(result), {.rule = repeated, .min = min, .max = max, .exit = exit});
  return rule(result);
}

void GrammarBuilder::set_loop(NodeId node, const Loop& loop) {
  grammar_.loop_of[node] = static_cast<std::int32_t>(grammar_.loops.size());
  grammar_.loops.push_back(loop);
}

std::vector<bool> GrammarBuilder::rules_with_text() const { return grammar::rules_with_text(grammar_); }

Grammar GrammarBuilder::finish(RuleId start) {
  grammar_.start = start;
  return pruned(std::move(grammar_));
}

}  // namespace kvasir::grammar
