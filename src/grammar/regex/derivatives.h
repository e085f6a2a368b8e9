// What may follow the first character of a text of a language, as far as somebody asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "grammar/regex/term.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

// Takes languages apart character by character (Brzozowski, "Derivatives of Regular Expressions", 1964), and tells
// which have a text at all. Everything is remembered.
//
// Thread safety: none.
class Derivatives {
 public:
  // The store outlives this.
  explicit Derivatives(TermStore& store) : store_(store) {}

  // By first character. No target is a language without texts. The reference lives as long as this.
  const TermRanges& of(TermId term);
  TermId next(TermId term, char32_t code_point);

  // Whether the language has a text.
  bool is_alive(TermId term);

  std::size_t size_bytes() const {
    return (raw_places_.size() + live_places_.size()) * sizeof(std::int32_t) + lives_.size() +
           (raw_.size() + live_.size()) * sizeof(TermRanges) + num_ranges_ * sizeof(TermRange);
  }

 private:
  enum class Life : std::uint8_t { kUnknown, kAlive, kDead };

  const TermRanges& raw(TermId term);  // targets may be dead
  TermRanges derive(TermId term);
  TermRanges derive_class(TermId term) const;
  TermRanges derive_concat(TermId term);
  TermRanges derive_children(TermId term);
  TermRanges derive_repeat(TermId term);
  TermRanges derive_multiples(TermId term);
  void search_text(TermId term);
  void grow();

  TermStore& store_;
  std::vector<std::int32_t> raw_places_;   // by term, in raw_; -1: not asked yet
  std::vector<std::int32_t> live_places_;  // by term, in live_
  std::vector<Life> lives_;                // by term
  std::size_t num_ranges_ = 0;
  std::deque<TermRanges> raw_;
  std::deque<TermRanges> live_;
};

}  // namespace kvasir::grammar
