// The texts of an answer that may not come again: keys of the objects, and values of the lists, that it is within.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/text_mark.h"

namespace kvasir::grammar {

// Scopes and texts are only added: an earlier state is one again by its numbers.
//
// Thread safety: none for one object; copies may live on other threads.
class SeenTexts {
 public:
  struct State {
    std::uint32_t scope = 0;  // the innermost
    std::uint32_t num_scopes = 1;
    std::uint32_t num_texts = 1;
    std::uint32_t num_bytes = 0;
    std::uint32_t begin = 0;   // of the text at hand, in bytes_
    bool has_text = false;     // there is one
    TextMark mark = {};        // .. and how it is recorded
  };

  SeenTexts() : scopes_(1), texts_(1) {}

  const State& state() const { return state_; }
  // Requires: a state of this object, or of the one that it is a copy of, no later than now.
  void restore(const State& state);
  void reserve(std::size_t num_tokens);

  void open();
  void close();
  void begin(const TextMark& mark);
  // More of the text at hand.
  void append(std::string_view bytes) {
    bytes_ += bytes;
    state_.num_bytes = static_cast<std::uint32_t>(bytes_.size());
  }
  // The text at hand ends. False: its scope has it already; then nothing changes.
  bool commit();
  // There is no text at hand.
  void drop() { state_.has_text = false; }

  bool has_text() const { return state_.has_text; }
  const TextMark& mark() const { return state_.mark; }
  // So far.
  std::string_view text() const { return std::string_view(bytes_).substr(state_.begin); }
  bool is_empty() const { return texts_.size() == 1; }

  // The recorded texts of a group, in the scope so many levels around the innermost one.
  template <typename Visit>
  void for_each(std::uint32_t num_levels, std::uint16_t group, Visit&& visit) const {
    for (std::uint32_t i = scopes_[scope_at(num_levels)].last; i != 0; i = texts_[i].before) {
      if (texts_[i].group == group) visit(std::string_view(bytes_).substr(texts_[i].begin, texts_[i].num_bytes));
    }
  }

  // The same scopes with the same texts, and the same text at hand.
  friend bool operator==(const SeenTexts& a, const SeenTexts& b);

 private:
  struct Scope {
    std::uint32_t outer = 0;  // 0 is the outermost, which is around itself
    std::uint32_t last = 0;   // of texts_; 0: none
  };
  struct Text {
    std::uint32_t before = 0;  // in the same scope
    std::uint32_t begin = 0;
    std::uint32_t num_bytes = 0;
    std::uint16_t group = 0;
  };

  std::uint32_t scope_at(std::uint32_t num_levels) const {
    std::uint32_t scope = state_.scope;
    while (num_levels-- > 0) scope = scopes_[scope].outer;
    return scope;
  }
  std::uint32_t add(const Scope& scope) {
    scopes_.push_back(scope);
    state_.num_scopes = static_cast<std::uint32_t>(scopes_.size());
    return state_.num_scopes - 1;
  }

  State state_;
  std::vector<Scope> scopes_;
  std::vector<Text> texts_;  // texts_[0] is none
  std::string bytes_;
};

}  // namespace kvasir::grammar
