// Which terminals a matcher records, so that no text comes twice in one object or list.
#pragma once

#include <compare>
#include <cstdint>

namespace kvasir::grammar {

// Scopes are objects and lists: they open and close as the text is read, whatever else it may be. So all terminals that
// may end at one byte of a text open and close alike, and texts that are recorded from one byte on are recorded alike.
struct TextMark {
  enum class Kind : std::uint8_t {
    kNone,
    kOpen,    // a scope begins behind the terminal
    kClose,   // the innermost scope ends with it
    kRecord,  // the terminal's text is in the scope from its end on, and was not in it before
  };
  Kind kind = Kind::kNone;
  bool is_outer = false;      // kRecord: in the scope around the innermost one
  bool may_run_out = true;    // kRecord: behind some beginning there are few texts
  std::uint16_t group = 0;    // kRecord: texts of several groups do not meet

  bool is_record() const { return kind == Kind::kRecord; }
  std::uint32_t num_levels() const { return is_outer ? 1 : 0; }  // from the innermost scope to the text's

  friend auto operator<=>(const TextMark&, const TextMark&) = default;
};

inline constexpr TextMark kOpensScope = {.kind = TextMark::Kind::kOpen};
inline constexpr TextMark kClosesScope = {.kind = TextMark::Kind::kClose};

}  // namespace kvasir::grammar
