#include "grammar/ir/prune.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "grammar/ir/tail_calls.h"

namespace kvasir::grammar {
namespace {

// Lists of numbers by number, in one piece.
class NumberLists {
 public:
  explicit NumberLists(std::size_t num_lists) : ends_(num_lists + 1) {}

  // First how many each list has, then the members.
  void count(std::uint32_t list) { ++ends_[list + 1]; }
  void allocate() {
    for (std::size_t i = 1; i < ends_.size(); ++i) ends_[i] += ends_[i - 1];
    members_.resize(ends_.back());
    next_ = ends_;
  }
  void add(std::uint32_t list, std::uint32_t member) { members_[next_[list]++] = member; }
  std::span<const std::uint32_t> operator[](std::uint32_t list) const {
    return std::span(members_).subspan(ends_[list], ends_[list + 1] - ends_[list]);
  }

 private:
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> members_;
};

// Which nodes reach an end of their rule, and which rules have a text: the least fixpoint.
class Ends {
 public:
  explicit Ends(const Grammar& grammar)
      : grammar_(grammar),
        has_end_(grammar.nodes.size()),
        predecessors_(grammar.nodes.size()),
        rules_of_(grammar.nodes.size()),
        callers_(grammar.rules.size()) {
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

  bool has_text(RuleId rule) const { return has_end_[grammar_.rules[rule].start] != 0; }
  bool is_passable(const Edge& edge) const {
    if (has_end_[edge.target] == 0) return false;
    if (edge.kind == Edge::Kind::kRule) return has_text(edge.value);
    return edge.kind != Edge::Kind::kTerminal || grammar_.terminals[edge.value].term != kNothing;
  }

 private:
  // to(list of a node or rule, member): for each pair.
  template <typename ToPredecessors, typename ToCallers>
  void for_each_step(ToPredecessors&& to_predecessors, ToCallers&& to_callers) const {
    for (NodeId node = 0; node < grammar_.nodes.size(); ++node) {
      for (const Edge& edge : grammar_.nodes[node].edges) {
        to_predecessors(edge.target, node);
        if (edge.kind == Edge::Kind::kRule) to_callers(edge.value, node);
      }
      if (grammar_.loop_of[node] < 0) continue;
      const Loop& loop = grammar_.loops[static_cast<std::size_t>(grammar_.loop_of[node])];
      to_predecessors(loop.exit, node);
      to_callers(loop.rule, node);
    }
  }

  void note_predecessors() {
    for (const Rule& rule : grammar_.rules) rules_of_.count(rule.start);
    for_each_step([&](NodeId to, NodeId) { predecessors_.count(to); }, [&](RuleId rule, NodeId) { callers_.count(rule); });
    rules_of_.allocate();
    predecessors_.allocate();
    callers_.allocate();
    for (RuleId rule = 0; rule < grammar_.rules.size(); ++rule) rules_of_.add(grammar_.rules[rule].start, rule);
    for_each_step([&](NodeId to, NodeId from) { predecessors_.add(to, from); },
                  [&](RuleId rule, NodeId from) { callers_.add(rule, from); });
  }

  void mark(NodeId node) {
    has_end_[node] = 1;
    pending_.push_back(node);
  }

  void check(NodeId node) {
    if (has_end_[node] != 0) return;
    if (grammar_.loop_of[node] >= 0) {
      const Loop& loop = grammar_.loops[static_cast<std::size_t>(grammar_.loop_of[node])];
      if (has_end_[loop.exit] != 0 && (loop.min == 0 || has_text(loop.rule))) mark(node);
      return;
    }
    for (const Edge& edge : grammar_.nodes[node].edges) {
      if (is_passable(edge)) return mark(node);
    }
  }

  const Grammar& grammar_;
  std::vector<std::uint8_t> has_end_;  // by node
  NumberLists predecessors_;           // nodes by node
  NumberLists rules_of_;               // by start node
  NumberLists callers_;                // nodes by rule
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
  for (Node& node : grammar.nodes) {
    node.edges.erase_if([&](const Edge& edge) { return !ends.is_passable(edge); });
  }
  for (Loop& loop : grammar.loops) {
    if (!ends.has_text(loop.rule)) loop.max = 0;
  }
  const std::vector<bool> is_reached = reached_nodes(grammar);
  for (NodeId node = 0; node < grammar.nodes.size(); ++node) {
    if (!is_reached[node]) grammar.nodes[node].edges.clear();
  }
  mark_tail_calls(grammar);
  return grammar;
}

std::vector<bool> rules_with_text(const Grammar& grammar) {
  const Ends ends(grammar);
  std::vector<bool> found;
  for (RuleId rule = 0; rule < grammar.rules.size(); ++rule) found.push_back(ends.has_text(rule));
  return found;
}

}  // namespace kvasir::grammar
