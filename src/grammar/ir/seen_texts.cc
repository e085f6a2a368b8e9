#include "grammar/ir/seen_texts.h"

#include <algorithm>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kBytesPerToken = 8;

}  // namespace

void SeenTexts::restore(const State& state) {
  state_ = state;
  scopes_.resize(state.num_scopes);
  texts_.resize(state.num_texts);
  bytes_.resize(state.num_bytes);
}

void SeenTexts::reserve(std::size_t num_tokens) {
  scopes_.reserve(2 * num_tokens + 1);
  texts_.reserve(num_tokens + 1);
  bytes_.reserve(kBytesPerToken * num_tokens);
}

void SeenTexts::open() { state_.scope = add({.outer = state_.scope}); }

void SeenTexts::close() { state_.scope = scopes_[state_.scope].outer; }

void SeenTexts::begin(const TextMark& mark) {
  state_.has_text = true;
  state_.mark = mark;
  state_.begin = state_.num_bytes;
}

bool SeenTexts::commit() {
  const std::uint32_t num_levels = state_.mark.num_levels();
  bool is_seen = false;
  for_each(num_levels, state_.mark.group, [&](std::string_view other) { is_seen = is_seen || other == text(); });
  if (is_seen) return false;
  const Scope changed = scopes_[scope_at(num_levels)];
  texts_.push_back({.before = changed.last,
                    .begin = state_.begin,
                    .num_bytes = state_.num_bytes - state_.begin,
                    .group = state_.mark.group});
  state_.num_texts = static_cast<std::uint32_t>(texts_.size());
  const std::uint32_t innermost_last = scopes_[state_.scope].last;
  const std::uint32_t recorded = add({.outer = changed.outer, .last = state_.num_texts - 1});
  state_.scope = num_levels == 0 ? recorded : add({.outer = recorded, .last = innermost_last});
  state_.has_text = false;
  return true;
}

bool operator==(const SeenTexts& a, const SeenTexts& b) {
  if (a.has_text() != b.has_text() || (a.has_text() && (a.text() != b.text() || a.mark() != b.mark()))) return false;
  std::uint32_t of_a = a.state_.scope;
  std::uint32_t of_b = b.state_.scope;
  while (true) {
    std::uint32_t i = a.scopes_[of_a].last;
    std::uint32_t j = b.scopes_[of_b].last;
    for (; i != 0 && j != 0; i = a.texts_[i].before, j = b.texts_[j].before) {
      const SeenTexts::Text& x = a.texts_[i];
      const SeenTexts::Text& y = b.texts_[j];
      if (x.group != y.group || a.bytes_.compare(x.begin, x.num_bytes, b.bytes_, y.begin, y.num_bytes) != 0) return false;
    }
    if (i != j) return false;
    const std::uint32_t next_a = a.scopes_[of_a].outer;
    const std::uint32_t next_b = b.scopes_[of_b].outer;
    const bool is_last_a = next_a == of_a;
    if (is_last_a != (next_b == of_b)) return false;
    if (is_last_a) return true;
    of_a = next_a;
    of_b = next_b;
  }
}

}  // namespace kvasir::grammar
