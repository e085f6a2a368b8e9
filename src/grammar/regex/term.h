// A regular language over characters, as a number.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace kvasir::grammar {

// A language in a TermStore. Equal numbers are equal languages; equal languages may have several numbers.
using TermId = std::uint32_t;

inline constexpr TermId kNothing = 0;    // the empty language
inline constexpr TermId kEmptyText = 1;  // only the empty text

inline constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

// Characters that may be in a text: Unicode's scalar values.
inline constexpr char32_t kLastCodePoint = 0x10FFFF;
inline constexpr char32_t kFirstSurrogate = 0xD800;
inline constexpr char32_t kLastSurrogate = 0xDFFF;

enum class TermKind : std::uint8_t {
  kNone,
  kEmpty,
  kClass,         // one character of a set
  kWord,          // one text of two characters at least
  kWords,         // one of several texts
  kConcat,        // children[0], then children[1]
  kUnion,         // any of the children
  kIntersection,  // each of the children
  kComplement,    // every text but those of children[0]
  kRepeat,        // children[0], min to max times
  kMultiples,     // decimals that a number divides
};

// Where the characters of a range lead: the texts that may follow.
struct TermRange {
  char32_t first = 0;
  char32_t last = 0;
  TermId target = kNothing;

  friend bool operator==(const TermRange&, const TermRange&) = default;
};

// Ascending and disjoint; characters outside of all ranges lead to kNothing. Neighbours of one target are one range.
using TermRanges = std::vector<TermRange>;

}  // namespace kvasir::grammar
