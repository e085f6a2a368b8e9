// Events of scopes and recorded texts within a token.
#pragma once

#include <cstdint>

#include "grammar/regex/text_mark.h"

namespace kvasir::grammar {

struct TextEvent {
  enum class Kind : std::uint8_t {
    kBegin,   // a text begins with the byte
    kCommit,  // the text ended before the byte, and is recorded
    kOpen,    // a scope begins behind the byte
    kClose,   // a scope ends with the byte
  };
  Kind kind = Kind::kBegin;
  std::uint32_t offset = 0;  // of the byte in the token
  TextMark mark = {};        // kBegin
};

}  // namespace kvasir::grammar
