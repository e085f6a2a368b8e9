#include "grammar/ir/tail_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxRing = 16;  // rules that call each other at their ends, each in the name of each
constexpr RuleId kNoRule = 0xFFFFFFFF;

struct TailCall {
  RuleId from = 0;
  RuleId to = 0;
  NodeId node = 0;
};

bool is_only_end(const Grammar& grammar, NodeId node) {
  return grammar.nodes[node].is_final && grammar.nodes[node].edges.empty() && grammar.loop_of[node] < 0;
}

bool is_tail(const Grammar& grammar, const Edge& edge) {
  return edge.kind == Edge::Kind::kRule && is_only_end(grammar, edge.target);
}

// By caller.
std::vector<TailCall> tail_calls(const Grammar& grammar) {
  std::vector<RuleId> owners(grammar.nodes.size(), kNoRule);
  std::vector<NodeId> pending;
  std::vector<TailCall> calls;
  const auto reach = [&](NodeId node, RuleId owner) {
    if (owners[node] != kNoRule) return;
    owners[node] = owner;
    pending.push_back(node);
  };
  reach(grammar.rules[grammar.start].start, grammar.start);
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    for (const Edge& edge : grammar.nodes[node].edges) {
      reach(edge.target, owners[node]);
      if (edge.kind == Edge::Kind::kRule) reach(grammar.rules[edge.value].start, edge.value);
      if (is_tail(grammar, edge)) calls.push_back({owners[node], edge.value, node});
    }
    if (grammar.loop_of[node] < 0) continue;
    const Loop& loop = grammar.loops[static_cast<std::size_t>(grammar.loop_of[node])];
    reach(loop.exit, owners[node]);
    if (loop.max > 0) reach(grammar.rules[loop.rule].start, loop.rule);
  }
  std::ranges::sort(calls, {}, &TailCall::from);
  return calls;
}

// Rings of rules: strongly connected components (Tarjan, "Depth-first search and linear graph algorithms", 1972), with
// a stack of its own since chains of rules are long.
class Rings {
 public:
  Rings(std::size_t num_rules, std::span<const TailCall> calls) : calls_(calls), places_(num_rules), rings_(num_rules) {
    for (const TailCall& call : calls) {
      if (places_[call.from].index == 0) visit(call.from);
    }
  }

  // Both are in one ring of few rules.
  bool has_both(RuleId a, RuleId b) const { return rings_[a] != 0 && rings_[a] == rings_[b] && sizes_[rings_[a]] <= kMaxRing; }

 private:
  struct Place {
    std::uint32_t index = 0;  // 0: not met yet
    std::uint32_t lowest = 0;
    bool is_open = false;
  };
  struct Frame {
    RuleId rule = 0;
    std::span<const TailCall> rest;
  };

  void enter(RuleId rule) {
    places_[rule] = {.index = ++num_met_, .lowest = num_met_, .is_open = true};
    open_.push_back(rule);
    frames_.push_back({rule, std::ranges::equal_range(calls_, rule, {}, &TailCall::from)});
  }

  void visit(RuleId first) {
    for (enter(first); !frames_.empty();) {
      Frame& frame = frames_.back();
      if (frame.rest.empty()) {
        close(frame.rule);
        continue;
      }
      const RuleId to = frame.rest.front().to;
      frame.rest = frame.rest.subspan(1);
      if (places_[to].index == 0) {
        enter(to);
      } else if (places_[to].is_open) {
        lower(frame.rule, places_[to].index);
      }
    }
  }

  void close(RuleId rule) {
    frames_.pop_back();
    if (!frames_.empty()) lower(frames_.back().rule, places_[rule].lowest);
    if (places_[rule].lowest != places_[rule].index) return;
    auto begin = open_.end() - 1;
    while (*begin != rule) --begin;
    sizes_.push_back(static_cast<std::size_t>(open_.end() - begin));
    for (auto it = begin; it != open_.end(); ++it) {
      places_[*it].is_open = false;
      rings_[*it] = static_cast<std::uint32_t>(sizes_.size() - 1);
    }
    open_.erase(begin, open_.end());
  }

  void lower(RuleId rule, std::uint32_t index) { places_[rule].lowest = std::min(places_[rule].lowest, index); }

  std::span<const TailCall> calls_;
  std::vector<Place> places_;         // by rule
  std::vector<std::uint32_t> rings_;  // by rule; 0: none
  std::vector<std::size_t> sizes_ = {0};
  std::vector<RuleId> open_;
  std::vector<Frame> frames_;
  std::uint32_t num_met_ = 0;
};

}  // namespace

void mark_tail_calls(Grammar& grammar) {
  const std::vector<TailCall> calls = tail_calls(grammar);
  if (calls.empty()) return;
  const Rings rings(grammar.rules.size(), calls);
  for (const TailCall& call : calls) {
    Node& node = grammar.nodes[call.node];
    const bool is_alias = grammar.rules[call.from].start == call.node && node.edges.size() == 1 && !node.is_final;
    if (!is_alias && !rings.has_both(call.from, call.to)) continue;
    for (Edge& edge : node.edges.edges()) {
      if (edge.value == call.to && is_tail(grammar, edge)) edge.is_tail = true;
    }
  }
}

}  // namespace kvasir::grammar
