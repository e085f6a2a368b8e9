#include "text/word_end.h"

#include "text/character.h"

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

bool is_upperish(const Character& c) {
  const CharCase kind = c.letter_case();
  return kind == CharCase::kUpper || kind == CharCase::kUncased || kind == CharCase::kMark;
}

bool is_lowerish(const Character& c) {
  const CharCase kind = c.letter_case();
  return kind == CharCase::kLower || kind == CharCase::kUncased || kind == CharCase::kMark;
}

// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ ; `begin` when nothing fits. The first part
// takes what it can and gives back down to the last character that fits the second.
std::size_t cased_end_lower(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  std::size_t last_lower_end = begin;
  for (Character c = character_at(text, begin); is_upperish(c); c = character_at(text, end)) {
    end += c.size_bytes;
    if (is_lowerish(c)) last_lower_end = end;
  }
  const std::size_t lower_end = run_end(text, end, is_lowerish);
  return lower_end > end ? lower_end : last_lower_end;
}

// Letters::kCased, with the character before them; `begin` when nothing fits.
std::size_t cased_letters_end(std::string_view text, std::size_t begin) {
  const Character first = character_at(text, begin);
  const bool has_prefix = may_begin_word(first);
  const std::size_t second = begin + first.size_bytes;
  if (has_prefix) {
    if (const std::size_t end = cased_end_lower(text, second); end > second) return end;
  }
  if (const std::size_t end = cased_end_lower(text, begin); end > begin) return end;
  if (has_prefix) {
    if (const std::size_t end = run_end(text, second, is_upperish); end > second) return end;
  }
  return run_end(text, begin, is_upperish);
}

// The letters of a word, with the character before them; `begin` when there are none.
std::size_t letters_end(std::string_view text, std::size_t begin, WordRules::Letters letters) {
  if (letters == WordRules::Letters::kCased) return cased_letters_end(text, begin);
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
  const bool with_slash = rules.after_symbols == WordRules::AfterSymbols::kBreaksAndSlash;
  return run_end(text, end, [&](const Character& c) {
    return c.is_line_break() || (with_slash && c.code_point == '/');
  });
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
    const bool attaches = rules.contractions == Contractions::kAttached && end < text.size();
    return attaches ? end + contraction_size(text, end, /*ignore_case=*/true) : end;
  }
  if (character_at(text, begin).is_number()) {
    return run_end(
        text, begin, [](const Character& c) { return c.is_number(); }, rules.max_digits);
  }
  if (const std::size_t end = symbols_end(text, begin, rules); end > begin) return end;
  if (const std::size_t end = line_breaks_end(text, begin); end > begin) return end;
  return whitespace_word_end(text, begin);
}

}  // namespace kvasir::text
