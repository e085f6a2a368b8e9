#include "grammar/ir/text_sampler.h"

#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>
#include <utility>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxSearchedStates = 100'000;
constexpr std::size_t kMaxRuleDepth = 5'000;
constexpr std::size_t kMaxFailed = 100;
constexpr int kMaxDraws = 8;
constexpr std::size_t kMaxTextBytes = 1 << 20;
constexpr std::size_t kByte = 1 << 20;  // of a distance; a step is 1, so that no way goes in a circle

// kFar where it is more than a number holds.
std::size_t far_sum(std::size_t a, std::size_t b) {
  constexpr std::size_t kFarthest = std::numeric_limits<std::size_t>::max();
  return a > kFarthest - b ? kFarthest : a + b;
}

std::size_t far_product(std::size_t a, std::size_t b) {
  constexpr std::size_t kFarthest = std::numeric_limits<std::size_t>::max();
  return a != 0 && b > kFarthest / a ? kFarthest : a * b;
}

// Bytes that are easy to read come first.
const std::array<unsigned char, 256>& bytes_in_order() {
  static const auto order = [] {
    std::array<unsigned char, 256> bytes{};
    std::size_t count = 0;
    const auto add = [&](unsigned first, unsigned last) {
      for (unsigned byte = first; byte <= last; ++byte) bytes[count++] = static_cast<unsigned char>(byte);
    };
    add('0', '9');
    add('a', 'z');
    add(' ', '/');
    add(':', '`');
    add('{', 0xFF);
    add(0, ' ' - 1);
    return bytes;
  }();
  return order;
}

}  // namespace

TextSampler::TextSampler(const Grammar& grammar, ByteStates& states)
    : grammar_(grammar), states_(states), distances_(grammar.nodes.size(), kFar), shortest_(grammar.terminals.size()) {
  find_distances();
}

const std::optional<std::string>& TextSampler::shortest(TerminalId terminal) {
  auto& known = shortest_[terminal];
  if (!known) known = shortest_from(states_.start(grammar_.terminals[terminal]), {});
  return *known;
}

// Breadth first, so the first end is a nearest one. A state is met once more for each text that is taken.
std::optional<std::string> TextSampler::shortest_from(ByteStateId start, const std::vector<std::string>& taken) {
  if (start == kDeadState) return std::nullopt;
  struct Reached {
    ByteStateId state;
    std::size_t from;
    unsigned char byte;
  };
  std::vector<Reached> reached = {{start, 0, 0}};
  std::unordered_map<ByteStateId, std::size_t> num_meetings = {{start, 1}};
  for (std::size_t at = 0; at < reached.size() && reached.size() < kMaxSearchedStates; ++at) {
    const ByteStateId state = reached[at].state;
    if (states_.is_accepting(state)) {
      std::string text;
      for (std::size_t i = at; i != 0; i = reached[i].from) text.push_back(static_cast<char>(reached[i].byte));
      std::ranges::reverse(text);
      if (std::ranges::find(taken, text) == taken.end()) return text;
    }
    for (const unsigned char byte : bytes_in_order()) {
      const ByteStateId next = states_.next(state, byte);
      if (next != kDeadState && num_meetings[next]++ <= taken.size()) reached.push_back({next, at, byte});
    }
  }
  return std::nullopt;
}

std::size_t TextSampler::cost(const Edge& edge) {
  switch (edge.kind) {
    case Edge::Kind::kTerminal: {
      const auto& text = shortest(edge.value);
      return text ? text->size() * kByte + 1 : kFar;
    }
    case Edge::Kind::kRule:
      return far_sum(distances_[grammar_.rules[edge.value].start], 1);
    default:
      return 1;
  }
}

// From the ends back, nearest first (Knuth, "A generalization of Dijkstra's algorithm", 1977).
void TextSampler::find_distances() {
  std::vector<std::vector<NodeId>> predecessors(grammar_.nodes.size());
  std::vector<std::vector<NodeId>> callers(grammar_.rules.size());
  std::vector<std::vector<RuleId>> rules_of(grammar_.nodes.size());
  using Found = std::pair<std::size_t, NodeId>;
  std::priority_queue<Found, std::vector<Found>, std::greater<>> queue;
  for (RuleId rule = 0; rule < grammar_.rules.size(); ++rule) rules_of[grammar_.rules[rule].start].push_back(rule);
  for (NodeId node = 0; node < grammar_.nodes.size(); ++node) {
    for (const Edge& edge : grammar_.nodes[node].edges) {
      predecessors[edge.target].push_back(node);
      if (edge.kind == Edge::Kind::kRule) callers[edge.value].push_back(node);
    }
    if (grammar_.loop_of[node] >= 0) {
      const Loop& loop = grammar_.loops[static_cast<std::size_t>(grammar_.loop_of[node])];
      predecessors[loop.exit].push_back(node);
      callers[loop.rule].push_back(node);
    }
    if (grammar_.nodes[node].is_final) queue.emplace(0, node);
  }
  const auto look_at = [&](NodeId node) {
    if (distances_[node] != kFar) return;
    std::size_t least = kFar;
    for (const Edge& edge : grammar_.nodes[node].edges) {
      if (distances_[edge.target] != kFar) least = std::min(least, far_sum(cost(edge), distances_[edge.target]));
    }
    if (grammar_.loop_of[node] >= 0) {
      const Loop& loop = grammar_.loops[static_cast<std::size_t>(grammar_.loop_of[node])];
      const std::size_t once = distances_[grammar_.rules[loop.rule].start];
      least = std::min(least, far_sum(far_product(loop.min, once), far_sum(distances_[loop.exit], 1)));
    }
    if (least != kFar) queue.emplace(least, node);
  };
  while (!queue.empty()) {
    const auto [distance, node] = queue.top();
    queue.pop();
    if (distances_[node] != kFar) continue;
    distances_[node] = distance;
    for (const NodeId from : predecessors[node]) look_at(from);
    for (const RuleId rule : rules_of[node]) {
      for (const NodeId caller : callers[rule]) look_at(caller);
    }
  }
}

std::optional<std::string> TextSampler::least() {
  random_ = nullptr;
  text_.clear();
  seen_ = {};
  num_failed_ = 0;
  if (!append_rule(grammar_.start, 0)) return std::nullopt;
  return text_;
}

std::optional<std::string> TextSampler::random(std::mt19937_64& random, std::size_t num_bytes) {
  random_ = &random;
  text_.clear();
  seen_ = {};
  num_failed_ = 0;
  max_bytes_ = num_bytes;
  num_steps_ = 0;
  if (!append_rule(grammar_.start, 0)) return std::nullopt;
  return text_;
}

bool TextSampler::append_rule(RuleId rule, std::size_t depth) {
  if (depth > kMaxRuleDepth) return false;
  return append_from(grammar_.rules[rule].start, depth);
}

bool TextSampler::append_from(NodeId node, std::size_t depth) {
  while (true) {
    ++num_steps_;
    if (distances_[node] == kFar || text_.size() > kMaxTextBytes) return false;
    if (grammar_.loop_of[node] >= 0) {
      const Loop& loop = grammar_.loops[static_cast<std::size_t>(grammar_.loop_of[node])];
      if (!append_loop(loop, depth)) return false;
      node = loop.exit;
      continue;
    }
    const std::span<const Edge> edges = grammar_.nodes[node].edges.edges();
    if (grammar_.nodes[node].is_final && (!is_random() || edges.empty() || below(4) == 0)) return true;
    std::vector<const Edge*> failed;
    const Edge* chosen = choose(failed, node);
    const std::size_t num_bytes = text_.size();
    const SeenTexts::State seen = seen_.state();
    while (chosen != nullptr && !append_edge(*chosen, depth)) {
      if (++num_failed_ > kMaxFailed) return false;
      text_.resize(num_bytes);
      seen_.restore(seen);
      failed.push_back(chosen);
      chosen = choose(failed, node);
    }
    if (chosen == nullptr) return false;
    node = chosen->target;
  }
}

// Chooses among the edges that have not failed; null: there is none.
const Edge* TextSampler::choose(const std::vector<const Edge*>& failed, NodeId node) {
  std::vector<const Edge*> open;
  for (const Edge& edge : grammar_.nodes[node].edges) {
    const bool is_open = cost(edge) != kFar && distances_[edge.target] != kFar;
    if (is_open && std::ranges::find(failed, &edge) == failed.end()) open.push_back(&edge);
  }
  if (open.empty()) return nullptr;
  if (is_random()) return open[below(open.size())];
  return *std::ranges::min_element(open, {}, [&](const Edge* edge) { return far_sum(cost(*edge), distances_[edge->target]); });
}

bool TextSampler::append_edge(const Edge& edge, std::size_t depth) {
  if (edge.kind == Edge::Kind::kTerminal) return append_terminal(edge.value);
  if (edge.kind == Edge::Kind::kRule) return append_rule(edge.value, depth + 1);
  return true;
}

bool TextSampler::append_loop(const Loop& loop, std::size_t depth) {
  const bool has_text = distances_[grammar_.rules[loop.rule].start] != kFar;
  for (std::uint32_t i = 0; i < loop.max && has_text; ++i) {
    if (i >= loop.min && (!is_random() || below(3) == 0)) break;
    if (!append_rule(loop.rule, depth + 1)) return false;
  }
  return true;
}

bool TextSampler::append_terminal(TerminalId terminal) {
  const TextMark& mark = grammar_.terminals[terminal].mark;
  const bool is_appended = mark.is_record() ? append_recorded(terminal) : append_text(terminal);
  if (mark.kind == TextMark::Kind::kOpen) seen_.open();
  if (mark.kind == TextMark::Kind::kClose) seen_.close();
  return is_appended;
}

bool TextSampler::append_text(TerminalId terminal) {
  if (is_random()) return append_at_random(states_.start(grammar_.terminals[terminal]));
  const auto& text = shortest(terminal);
  if (!text) return false;
  text_ += *text;
  return true;
}

// A text that its scope does not have.
bool TextSampler::append_recorded(TerminalId terminal) {
  const TextMark& mark = grammar_.terminals[terminal].mark;
  const std::size_t begin = text_.size();
  const auto record = [&] {
    seen_.begin(mark);
    seen_.append(std::string_view(text_).substr(begin));
    return seen_.commit();
  };
  for (int i = 0; i < kMaxDraws && is_random(); ++i) {
    if (append_at_random(states_.start(grammar_.terminals[terminal])) && record()) return true;
    text_.resize(begin);
  }
  std::vector<std::string> taken;
  seen_.for_each(mark.num_levels(), mark.group, [&](std::string_view text) { taken.emplace_back(text); });
  const auto text = shortest_from(states_.start(grammar_.terminals[terminal]), taken);
  if (!text) return false;
  text_ += *text;
  return record();
}

bool TextSampler::append_at_random(ByteStateId state) {
  while (is_random()) {
    if (states_.is_accepting(state) && (states_.is_final(state) || below(6) == 0)) return true;
    std::vector<unsigned char> plain;
    std::vector<unsigned char> others;
    for (const unsigned char byte : bytes_in_order()) {
      if (states_.next(state, byte) == kDeadState) continue;
      (byte > ' ' && byte < 0x7F && byte != '\\' ? plain : others).push_back(byte);
    }
    const auto& bytes = others.empty() || (!plain.empty() && below(12) != 0) ? plain : others;
    const unsigned char byte = bytes[below(bytes.size())];
    text_.push_back(static_cast<char>(byte));
    state = states_.next(state, byte);
  }
  const auto rest = shortest_from(state, {});
  if (!rest) return false;
  text_ += *rest;
  return true;
}

}  // namespace kvasir::grammar
