// A place in a grammar.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "grammar/compile/row_store.h"
#include "grammar/ir/grammar.h"
#include "grammar/regex/byte_states.h"

namespace kvasir::grammar {

using ConfigId = std::uint32_t;
inline constexpr ConfigId kNoConfig = 0xFFFFFFFF;

// A terminal on its way.
struct Place {
  RowId row = 0;
  TerminalId terminal = 0;
  ByteStateId state = kDeadState;

  friend auto operator<=>(const Place&, const Place&) = default;
};

// Everything that a text may be at its end. Thread safety: as of a value.
struct Config {
  std::vector<Place> places;  // ascending, each once
  RowId boundary = kNoRow;    // a row that begins here
  RowId recorded = kNoRow;    // .. behind a text that is recorded (TextMark)
  bool at_text_start = false;

  void clear() {
    places.clear();
    boundary = kNoRow;
    recorded = kNoRow;
    at_text_start = false;
  }
  bool is_dead() const { return places.empty() && boundary == kNoRow && recorded == kNoRow; }
};

}  // namespace kvasir::grammar
