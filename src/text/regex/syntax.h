// A regular expression as a tree.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "text/regex/code_point_set.h"

namespace kvasir::text::regex {

inline constexpr std::int32_t kUnbounded = -1;

struct Node {
  enum class Kind : std::uint8_t {
    kSet,        // one character
    kConcat,     // the children in turn; none: the empty text
    kAlternate,  // the first child that leads to a match
    kRepeat,     // children[0], min to max times
    kLook,       // takes nothing: the next character is in the set, or the text ends and `at_end`
  };
  Kind kind = Kind::kConcat;
  CodePointSet set = {};
  bool at_end = false;
  bool is_lazy = false;
  std::int32_t min = 0;
  std::int32_t max = kUnbounded;
  std::vector<Node> children = {};
};

// Oniguruma's syntax, as far as one pass over a text with a look at one character ahead can do it. kBadFile, with
// the place in characters: back-references, look-behind, atomic groups, \b, possessive groups, looks at more than one
// character, unknown escapes and properties, more than 250 nested groups. A possessive class is its greedy form with
// a look ahead.
Result<Node> parse(std::string_view pattern);

}  // namespace kvasir::text::regex
