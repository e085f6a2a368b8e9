// Where the word ends that begins at a place of a text: the patterns that most byte-level models share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::text {

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Requires of all here: begin < text.size(). The result is above begin.
std::size_t gpt2_word_end(std::string_view text, std::size_t begin);

// \s+(?!\S)|\s+ : a run leaves its last character to the word after it, unless the text ends there.
std::size_t whitespace_word_end(std::string_view text, std::size_t begin);

// \s*[\r\n]+ : the end of the last line break in the run of whitespace; `begin` when it has none.
std::size_t line_breaks_end(std::string_view text, std::size_t begin);

// How a family differs from Llama 3, whose pattern is
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
struct WordRules {
  enum class Contractions : std::uint8_t {
    kFirst,     // a word of their own
    kAttached,  // the end of the word before
    kNone,
  };
  // How a run of letters is cut.
  enum class Letters : std::uint8_t {
    kWhole,
    kWithMarks,  // and combining marks are letters
    kCased,      // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, or + and *
    kCasedHan,   // the same without \p{Han}, whose runs are words before all else
    kPhrases,    // (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+
  };
  enum class AfterSymbols : std::uint8_t {
    kBreaks,          // [\r\n]*
    kBreaksAndSlash,  // [\r\n/]*
    kOneOfThem,       // [\r\n/]?
    kNothing,
  };
  // The end of all patterns.
  enum class Spaces : std::uint8_t {
    kRuns,     // \s+(?!\S)|\s+
    kHalving,  // \s{512}(?!\S)|\s{256}(?!\S)|..|\s{4}(?!\S)|\s{1,2}(?!\S)|\s
  };
  Contractions contractions = Contractions::kFirst;
  Letters letters = Letters::kWhole;
  AfterSymbols after_symbols = AfterSymbols::kBreaks;
  Spaces spaces = Spaces::kRuns;
  std::size_t max_digits = 3;
};
std::size_t word_end(std::string_view text, std::size_t begin, const WordRules& rules);

}  // namespace kvasir::text
