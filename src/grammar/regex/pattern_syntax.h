// A regular expression of JSON Schema as a tree.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/regex/term.h"
#include "kvasir/result.h"
#include "text/regex/code_point_set.h"

namespace kvasir::grammar {

struct PatternNode {
  enum class Kind : std::uint8_t {
    kSet,        // one character
    kConcat,     // the children in turn; none: the empty text
    kAlternate,  // any of the children
    kRepeat,     // children[0], min to max times
    kBegin,      // ^
    kEnd,        // $
    kLook,       // children[0] follows here, or does not (is_negative)
  };
  Kind kind = Kind::kConcat;
  text::regex::CodePointSet set = {};
  bool is_negative = false;
  std::uint32_t min = 0;
  std::uint32_t max = kUnbounded;
  std::vector<PatternNode> children = {};
};

// Where validators read a class differently.
enum class ClassReading : std::uint8_t {
  kNarrow,  // characters that every one of them counts
  kWide,    // characters that some of them count: right where the language is complemented
};

// ECMA-262's syntax without flags, and (?P<name>..) for a named group. kUsage with the place in characters: syntax
// errors, back-references, look-behind, \b, flags, repetitions beyond 100,000, more than 64 nested groups; more than
// 16 KiB.
Result<PatternNode> parse_pattern(std::string_view pattern, ClassReading reading);

}  // namespace kvasir::grammar
