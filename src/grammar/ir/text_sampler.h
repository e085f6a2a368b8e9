// Texts of a grammar: the least one, and random ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "grammar/ir/grammar.h"
#include "grammar/ir/seen_texts.h"
#include "grammar/regex/byte_states.h"

namespace kvasir::grammar {

// Walks the rules themselves, so it always comes to an end. Texts that are recorded (TextMark) come once in their scope. Tokens that a grammar takes by their id have no text here.
//
// Thread safety: none.
class TextSampler {
 public:
  // Both outlive this. Requires: a grammar that has a text.
  TextSampler(const Grammar& grammar, ByteStates& states);

  // A shortest text, in bytes; nothing: it is longer than 1 MiB, or takes more than 100,000 states to find.
  std::optional<std::string> least();
  // Goes where it likes for about `num_bytes`, then to the end by a shortest way.
  std::optional<std::string> random(std::mt19937_64& random, std::size_t num_bytes);

 private:
  static constexpr std::size_t kFar = std::numeric_limits<std::size_t>::max();

  // A way through a terminal, or nothing when it is too far.
  const std::optional<std::string>& shortest(TerminalId terminal);
  // .. from a state; none of `taken`.
  std::optional<std::string> shortest_from(ByteStateId start, const std::vector<std::string>& taken);
  void find_distances();
  std::size_t cost(const Edge& edge);

  bool append_rule(RuleId rule, std::size_t depth);
  bool append_from(NodeId node, std::size_t depth);
  bool append_edge(const Edge& edge, std::size_t depth);
  bool append_loop(const Loop& loop, std::size_t depth);
  bool append_terminal(TerminalId terminal);
  bool append_text(TerminalId terminal);
  bool append_recorded(TerminalId terminal);
  const Edge* choose(const std::vector<const Edge*>& failed, NodeId node);
  bool append_at_random(ByteStateId state);
  bool is_random() const { return random_ != nullptr && text_.size() + num_steps_ / 8 < max_bytes_; }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>((*random_)() % limit); }

  const Grammar& grammar_;
  ByteStates& states_;
  std::vector<std::size_t> distances_;  // by node: of its rule's end, in bytes, then steps
  std::vector<std::optional<std::optional<std::string>>> shortest_;  // by terminal
  std::mt19937_64* random_ = nullptr;
  std::string text_;
  SeenTexts seen_;
  std::size_t num_failed_ = 0;  // edges that led to no text, because all were taken
  std::size_t max_bytes_ = 0;
  std::size_t num_steps_ = 0;
};

}  // namespace kvasir::grammar
