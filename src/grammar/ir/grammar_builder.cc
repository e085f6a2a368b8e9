#include "grammar/ir/grammar_builder.h"

#include <algorithm>
#include <optional>

#include "grammar/ir/prune.h"

namespace kvasir::grammar {
namespace {

bool is_plain(const Part& part) {
  return part.kind == Part::Kind::kTerminal && part.terminal.form == TextForm::kPlain;
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

TerminalId GrammarBuilder::terminal(const Terminal& terminal) {
  const auto [found, is_new] =
      terminals_.try_emplace(terminal, static_cast<TerminalId>(grammar_.terminals.size()));
  if (is_new) grammar_.terminals.push_back(terminal);
  return found->second;
}

void GrammarBuilder::add_edges(NodeId from, const Part& part, NodeId to) {
  std::vector<Edge>& edges = grammar_.nodes[from].edges;
  switch (part.kind) {
    case Part::Kind::kToken:
      edges.push_back({Edge::Kind::kToken, part.value, to});
      return;
    case Part::Kind::kRule:
      edges.push_back({Edge::Kind::kRule, part.value, to});
      return;
    case Part::Kind::kTerminal:
      break;
  }
  Terminal wanted = part.terminal;
  if (wanted.form == TextForm::kPlain) {
    if (store_.is_nullable(wanted.term)) edges.push_back({Edge::Kind::kSkip, 0, to});
    wanted.term = store_.without_empty_text(wanted.term);
  }
  if (wanted.term != kNothing) edges.push_back({Edge::Kind::kTerminal, terminal(wanted), to});
}

Part GrammarBuilder::sequence(std::span<const Part> parts) {
  std::vector<Part> fused;
  for (const Part& part : parts) {
    if (is_plain(part) && part.terminal.term == kEmptyText) continue;
    if (!fused.empty() && is_plain(fused.back()) && is_plain(part)) {
      fused.back().terminal.term = store_.concat(fused.back().terminal.term, part.terminal.term);
    } else {
      fused.push_back(part);
    }
  }
  if (fused.empty()) return text(kEmptyText);
  if (fused.size() == 1) return fused[0];
  const RuleId result = declare({});
  NodeId from = grammar_.rules[result].start;
  for (std::size_t i = 0; i < fused.size(); ++i) {
    const NodeId to = add_node(/*is_final=*/i + 1 == fused.size());
    add_edges(from, fused[i], to);
    from = to;
  }
  return rule(result);
}

Part GrammarBuilder::choice(std::span<const Part> parts) {
  std::vector<TermId> plain;
  std::vector<Part> others;
  for (const Part& part : parts) {
    if (is_plain(part)) {
      plain.push_back(part.terminal.term);
    } else {
      others.push_back(part);
    }
  }
  const Part all_plain = text(store_.any_of(std::move(plain)));
  if (others.empty()) return all_plain;
  if (others.size() == 1 && all_plain.terminal.term == kNothing) return others[0];
  const RuleId result = declare({});
  const NodeId to = add_node(/*is_final=*/true);
  const NodeId from = grammar_.rules[result].start;
  add_edges(from, all_plain, to);
  for (const Part& part : others) add_edges(from, part, to);
  return rule(result);
}

Part GrammarBuilder::repeat(const Part& part, std::uint32_t min, std::uint32_t max) {
  if (is_plain(part)) return text(store_.repeat(part.terminal.term, min, max));
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

Grammar GrammarBuilder::finish(RuleId start) {
  grammar_.start = start;
  return pruned(std::move(grammar_));
}

}  // namespace kvasir::grammar
