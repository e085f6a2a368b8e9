#include "grammar/ir/prune.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kvasir::grammar {
namespace {

// Which nodes reach an end of their rule, and which rules have a text: the least fixpoint.
class Ends {
 public:
  explicit Ends(const Grammar& grammar)
      : grammar_(grammar), has_end_(grammar.nodes.size()), callers_(grammar.rules.size()) {
    note_predecessors();
    for (NodeId node = 0; node < grammar_.nodes.size(); ++node) {
      if (grammar_.nodes[node].is_final) mark(node);
    }
    while (!pending_.empty()) {
      const NodeId node = pending_.back();
      pending_.pop_back();
      for (const NodeId from : predecessors_[node]) check(from);
      for (const RuleId rule : rules_of_[node]) {
        for (const NodeId caller : callers_[rule]) check(caller);
      }
    }
  }

  bool reaches_end(NodeId node) const { return has_end_[node]; }
  bool has_text(RuleId rule) const { return has_end_[grammar_.rules[rule].start]; }
  bool is_passable(const Edge& edge) const {
    if (edge.kind == Edge::Kind::kRule && !has_text(edge.value)) return false;
    if (edge.kind == Edge::Kind::kTerminal && grammar_.terminals[edge.value].term == kNothing) return false;
    return has_end_[edge.target];
  }

 private:
  void note_predecessors() {
    predecessors_.resize(grammar_.nodes.size());
    rules_of_.resize(grammar_.nodes.size());
    for (RuleId rule = 0; rule < grammar_.rules.size(); ++rule) {
      rules_of_[grammar_.rules[rule].start].push_back(rule);
    }
    for (NodeId node = 0; node < grammar_.nodes.size(); ++node) {
      for (const Edge& edge : grammar_.nodes[node].edges) {
        predecessors_[edge.target].push_back(node);
        if (edge.kind == Edge::Kind::kRule) callers_[edge.value].push_back(node);
      }
      if (grammar_.loop_of[node] < 0) continue;
      const Loop& loop = grammar_.loops[static_cast<std::size_t>(grammar_.loop_of[node])];
      predecessors_[loop.exit].push_back(node);
      callers_[loop.rule].push_back(node);
    }
  }

  void mark(NodeId node) {
    if (has_end_[node]) return;
    has_end_[node] = true;
    pending_.push_back(node);
  }

  void check(NodeId node) {
    if (grammar_.loop_of[node] >= 0) {
      const Loop& loop = grammar_.loops[static_cast<std::size_t>(grammar_.loop_of[node])];
      if (has_end_[loop.exit] && (loop.min == 0 || has_text(loop.rule))) mark(node);
      return;
    }
    const auto passable = [&](const Edge& edge) { return is_passable(edge); };
    if (std::ranges::any_of(grammar_.nodes[node].edges, passable)) mark(node);
  }

  const Grammar& grammar_;
  std::vector<bool> has_end_;
  std::vector<std::vector<NodeId>> predecessors_;
  std::vector<std::vector<RuleId>> rules_of_;     // by start node
  std::vector<std::vector<NodeId>> callers_;      // by rule
  std::vector<NodeId> pending_;
};

std::vector<bool> reached_nodes(const Grammar& grammar) {
  std::vector<bool> is_reached(grammar.nodes.size());
  std::vector<NodeId> pending;
  const auto reach = [&](NodeId node) {
    if (!is_reached[node]) pending.push_back(node);
    is_reached[node] = true;
  };
  reach(grammar.rules[grammar.start].start);
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    for (const Edge& edge : grammar.nodes[node].edges) {
      reach(edge.target);
      if (edge.kind == Edge::Kind::kRule) reach(grammar.rules[edge.value].start);
    }
    if (grammar.loop_of[node] < 0) continue;
    const Loop& loop = grammar.loops[static_cast<std::size_t>(grammar.loop_of[node])];
    reach(loop.exit);
    if (loop.max > 0) reach(grammar.rules[loop.rule].start);
  }
  return is_reached;
}

}  // namespace

Grammar pruned(Grammar grammar) {
  const Ends ends(grammar);
  if (!ends.has_text(grammar.start)) return {};
  std::vector<Node> nodes = grammar.nodes;
  for (Node& node : nodes) {
    std::erase_if(node.edges, [&](const Edge& edge) { return !ends.is_passable(edge); });
  }
  for (Loop& loop : grammar.loops) {
    if (!ends.has_text(loop.rule)) loop.max = 0;
  }
  grammar.nodes = std::move(nodes);
  const std::vector<bool> is_reached = reached_nodes(grammar);
  for (NodeId node = 0; node < grammar.nodes.size(); ++node) {
    if (!is_reached[node]) grammar.nodes[node].edges.clear();
  }
  return grammar;
}

std::vector<bool> rules_with_text(const Grammar& grammar) {
  const Ends ends(grammar);
  std::vector<bool> found;
  for (RuleId rule = 0; rule < grammar.rules.size(); ++rule) found.push_back(ends.has_text(rule));
  return found;
}

}  // namespace kvasir::grammar
