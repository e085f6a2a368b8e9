#include "text/word_end.h"

#include "text/character.h"
#include "text/character_ranges.h"

namespace kvasir::text {
namespace {

using enum CharClass;

std::size_t symbol_run_end(std::string_view text, std::size_t position) {
  return run_end(text, position, [](const Character& c) { return c.is_symbol(); });
}

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The length of 's 't 'm 'd 're 've 'll at this position, 0 when none is there.
std::size_t contraction_size(std::string_view text, std::size_t position, bool ignore_case) {
  if (text[position] != '\'') return 0;
  const auto at = [&](std::size_t i) {
    if (position + i >= text.size()) return '\0';
    return ignore_case ? ascii_lower(text[position + i]) : text[position + i];
  };
  const char first = at(1);
  if (ignore_case && text.substr(position + 1).starts_with("\u017F"))
    return 3;  // the long s is an s in any case
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const char second = at(2);
  const bool is_long = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                       (first == 'l' && second == 'l');
  return is_long ? 3 : 0;
}

// [^\r\n\p{L}\p{N}], which a run of letters may begin with.
bool may_begin_word(const Character& c) {
  return c.size_bytes > 0 && !c.is_line_break() && !c.is_letter() && !c.is_number();
}

bool is_han(const Character& c) { return c.size_bytes > 0 && in_ranges(kHan, c.code_point); }

bool is_uncased(const Character& c, bool without_han) {
  const CharCase kind = c.letter_case();
  return (kind == CharCase::kUncased || kind == CharCase::kMark) && !(without_han && is_han(c));
}

// The two classes of Letters::kCased.
struct CasedLetters {
  bool without_han = false;

  bool is_upperish(const Character& c) const {
    return c.letter_case() == CharCase::kUpper || is_uncased(c, without_han);
  }
  bool is_lowerish(const Character& c) const {
    return c.letter_case() == CharCase::kLower || is_uncased(c, without_han);
  }
  std::size_t upper_end(std::string_view text, std::size_t begin) const {
    return run_end(text, begin, [this](const Character& c) { return is_upperish(c); });
  }
  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ ; `begin` when nothing fits. The first part
  // takes what it can and gives back down to the last character that fits the second.
  std::size_t end_lower(std::string_view text, std::size_t begin) const {
    std::size_t end = begin;
    std::size_t last_lower_end = begin;
    for (Character c = character_at(text, begin); is_upperish(c); c = character_at(text, end)) {
      end += c.size_bytes;
      if (is_lowerish(c)) last_lower_end = end;
    }
    const std::size_t lower_end = run_end(text, end, [this](const Character& c) { return is_lowerish(c); });
    return lower_end > end ? lower_end : last_lower_end;
  }
  // With the character before them; `begin` when nothing fits.
  std::size_t word_end(std::string_view text, std::size_t begin) const {
    const Character first = character_at(text, begin);
    const bool has_prefix = may_begin_word(first);
    const std::size_t second = begin + first.size_bytes;
    if (has_prefix) {
      if (const std::size_t end = end_lower(text, second); end > second) return end;
    }
    if (const std::size_t end = end_lower(text, begin); end > begin) return end;
    if (has_prefix) {
      if (const std::size_t end = upper_end(text, second); end > second) return end;
    }
    return upper_end(text, begin);
  }
};

// (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+ ; `begin` when nothing fits
std::size_t phrase_end(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  for (;;) {
    const std::size_t letter = end + (end > begin && end < text.size() && text[end] == ' ' ? 1 : 0);
    const Character c = character_at(text, letter);
    if (!c.is_letter()) return end;
    end = run_end(text, letter + c.size_bytes, [](const Character& mark) { return mark.is_mark(); });
  }
}

// Spaces::kHalving
std::size_t halving_spaces_end(std::string_view text, std::size_t begin) {
  constexpr std::size_t kLongest = 512;
  std::size_t num_spaces = 0;
  std::size_t end = begin;
  for (Character c = character_at(text, begin); c.is(kWhitespace) && num_spaces <= kLongest;
       c = character_at(text, end)) {
    ++num_spaces;
    end += c.size_bytes;
  }
  // The last one goes with the word behind it.
  if (end < text.size() && num_spaces <= kLongest) --num_spaces;
  std::size_t length = kLongest;
  while (length > 1 && length > num_spaces) length /= 2;
  return run_end(
      text, begin, [](const Character& c) { return c.is(kWhitespace); }, length);
}

// The letters of a word, with the character before them; `begin` when there are none.
std::size_t letters_end(std::string_view text, std::size_t begin, WordRules::Letters letters) {
  using Letters = WordRules::Letters;
  if (letters == Letters::kCased) return CasedLetters{}.word_end(text, begin);
  if (letters == Letters::kCasedHan) {
    if (const std::size_t end = run_end(text, begin, is_han); end > begin) return end;
    return CasedLetters{.without_han = true}.word_end(text, begin);
  }
  if (letters == Letters::kPhrases) {
    const std::size_t body = begin + (may_begin_word(character_at(text, begin))
                                          ? character_at(text, begin).size_bytes
                                          : 0);
    const std::size_t end = phrase_end(text, body);
    return end > body ? end : begin;
  }
  const bool with_marks = letters == WordRules::Letters::kWithMarks;
  const auto is_part = [&](const Character& c) { return c.is_letter() || (with_marks && c.is_mark()); };
  const Character first = character_at(text, begin);
  if (is_part(first)) return run_end(text, begin, is_part);
  if (!may_begin_word(first)) return begin;
  const std::size_t second = begin + first.size_bytes;
  const std::size_t end = run_end(text, second, is_part);
  return end > second ? end : begin;
}

// ` ?[^\s\p{L}\p{N}]+` and what follows it; `begin` when there is none.
std::size_t symbols_end(std::string_view text, std::size_t begin, const WordRules& rules) {
  const bool without_marks = rules.letters == WordRules::Letters::kWithMarks;
  const auto is_part = [&](const Character& c) { return c.is_symbol() && !(without_marks && c.is_mark()); };
  const std::size_t body = begin + (text[begin] == ' ' ? 1 : 0);
  const std::size_t end = run_end(text, body, is_part);
  if (end == body) return begin;
  if (rules.after_symbols == WordRules::AfterSymbols::kNothing) return end;
  const bool with_slash = rules.after_symbols != WordRules::AfterSymbols::kBreaks;
  const bool is_one = rules.after_symbols == WordRules::AfterSymbols::kOneOfThem;
  const auto follows = [&](const Character& c) {
    return c.is_line_break() || (with_slash && c.code_point == '/');
  };
  return run_end(text, end, follows, is_one ? 1 : std::string_view::npos);
}

}  // namespace

std::size_t whitespace_word_end(std::string_view text, std::size_t begin) {
  std::size_t last = begin;
  std::size_t end = begin;
  for (Character c = character_at(text, begin); c.is(kWhitespace); c = character_at(text, end)) {
    last = end;
    end += c.size_bytes;
  }
  return end == text.size() || last == begin ? end : last;
}

std::size_t gpt2_word_end(std::string_view text, std::size_t begin) {
  if (const std::size_t size = contraction_size(text, begin, /*ignore_case=*/false)) return begin + size;
  const std::size_t body = begin + (text[begin] == ' ' ? 1 : 0);
  const Character first = character_at(text, body);
  if (first.is(kLetter) || first.is(kNumber)) return class_run_end(text, body, first.char_class);
  if (first.is_symbol()) return symbol_run_end(text, body);
  return whitespace_word_end(text, begin);
}

std::size_t line_breaks_end(std::string_view text, std::size_t begin) {
  std::size_t breaks_end = begin;
  std::size_t end = begin;
  for (Character c = character_at(text, begin); c.is(kWhitespace); c = character_at(text, end)) {
    end += c.size_bytes;
    if (c.is_line_break()) breaks_end = end;
  }
  return breaks_end;
}

std::size_t word_end(std::string_view text, std::size_t begin, const WordRules& rules) {
  using Contractions = WordRules::Contractions;
  if (rules.contractions == Contractions::kFirst) {
    if (const std::size_t size = contraction_size(text, begin, /*ignore_case=*/true)) return begin + size;
  }
  if (const std::size_t end = letters_end(text, begin, rules.letters); end > begin) {
    const bool is_han_run = rules.letters == WordRules::Letters::kCasedHan &&
                            is_han(character_at(text, begin));
    const bool attaches = rules.contractions == Contractions::kAttached && end < text.size() && !is_han_run;
    return attaches ? end + contraction_size(text, end, /*ignore_case=*/true) : end;
  }
  if (character_at(text, begin).is_number()) {
    return run_end(
        text, begin, [](const Character& c) { return c.is_number(); }, rules.max_digits);
  }
  if (const std::size_t end = symbols_end(text, begin, rules); end > begin) return end;
  if (const std::size_t end = line_breaks_end(text, begin); end > begin) return end;
  if (rules.spaces == WordRules::Spaces::kHalving) return halving_spaces_end(text, begin);
  return whitespace_word_end(text, begin);
}

}  // namespace kvasir::text
