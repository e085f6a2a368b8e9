#include "text/pretokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "base/code_point.h"
#include "base/printable.h"
#include "text/char_class.h"

namespace kvasir::text {
namespace {

using enum CharClass;
using Visitor = std::function<void(std::string_view)>;

// One character of a text, or the end of it.
struct Character {
  char32_t code_point = 0;
  std::size_t size_bytes = 0;  // 0 at the end
  CharClass char_class = kOther;

  bool is(CharClass wanted) const { return size_bytes > 0 && char_class == wanted; }
  bool is_line_break() const { return is(kWhitespace) && (code_point == '\r' || code_point == '\n'); }
  // [^\s\p{L}\p{N}]
  bool is_symbol() const { return size_bytes > 0 && (char_class == kOther || char_class == kPunctuation); }
};

Character character_at(std::string_view text, std::size_t position) {
  if (position >= text.size()) return {};
  const auto [code_point, size_bytes] = code_point_at(text, position);
  return {code_point, size_bytes, char_class(code_point)};
}

// The end of the run of characters that satisfy the predicate, at most max_characters of them.
template <class Predicate>
std::size_t run_end(std::string_view text, std::size_t position, Predicate predicate,
                    std::size_t max_characters = std::string_view::npos) {
  for (; max_characters > 0; --max_characters) {
    const Character character = character_at(text, position);
    if (character.size_bytes == 0 || !predicate(character)) break;
    position += character.size_bytes;
  }
  return position;
}

std::size_t class_run_end(std::string_view text, std::size_t position, CharClass wanted) {
  return run_end(text, position, [wanted](const Character& c) { return c.is(wanted); });
}

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
  const bool is_long =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return is_long ? 3 : 0;
}

// \s+(?!\S)|\s+ : a run leaves its last character to the word after it, unless the text ends there.
std::size_t whitespace_word_end(std::string_view text, std::size_t begin) {
  std::size_t last = begin;
  std::size_t end = begin;
  for (Character c = character_at(text, begin); c.is(kWhitespace); c = character_at(text, end)) {
    last = end;
    end += c.size_bytes;
  }
  return end == text.size() || last == begin ? end : last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word_end(std::string_view text, std::size_t begin) {
  if (const std::size_t size = contraction_size(text, begin, /*ignore_case=*/false)) return begin + size;
  const std::size_t body = begin + (text[begin] == ' ' ? 1 : 0);
  const Character first = character_at(text, body);
  if (first.is(kLetter) || first.is(kNumber)) return class_run_end(text, body, first.char_class);
  if (first.is_symbol()) return symbol_run_end(text, body);
  return whitespace_word_end(text, begin);
}

// \s*[\r\n]+ : the end of the last line break in the run of whitespace; `begin` when it has none.
std::size_t line_breaks_end(std::string_view text, std::size_t begin) {
  std::size_t breaks_end = begin;
  std::size_t end = begin;
  for (Character c = character_at(text, begin); c.is(kWhitespace); c = character_at(text, end)) {
    end += c.size_bytes;
    if (c.is_line_break()) breaks_end = end;
  }
  return breaks_end;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t llama3_word_end(std::string_view text, std::size_t begin, std::size_t max_digits) {
  if (const std::size_t size = contraction_size(text, begin, /*ignore_case=*/true)) return begin + size;
  const Character first = character_at(text, begin);
  if (first.is(kLetter)) return class_run_end(text, begin, kLetter);
  if (first.is(kNumber)) {
    return run_end(
        text, begin, [](const Character& c) { return c.is(kNumber); }, max_digits);
  }
  const std::size_t second = begin + first.size_bytes;
  if (!first.is_line_break() && character_at(text, second).is(kLetter))
    return class_run_end(text, second, kLetter);
  const std::size_t body = first.code_point == ' ' ? second : begin;
  if (character_at(text, body).is_symbol()) {
    return run_end(text, symbol_run_end(text, body), [](const Character& c) { return c.is_line_break(); });
  }
  if (const std::size_t end = line_breaks_end(text, begin); end > begin) return end;
  return whitespace_word_end(text, begin);
}

template <class WordEnd>
void visit_words(std::string_view text, const Visitor& visit, WordEnd word_end) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = word_end(text, begin);
    visit(text.substr(begin, end - begin));
    begin = end;
  }
}

// Visits the stretches of the text that are, in turn, inside and outside of a class of characters.
template <class IsInside, class Inside, class Outside>
void visit_runs(std::string_view text, IsInside is_inside, Inside inside, Outside outside) {
  for (std::size_t begin = 0; begin < text.size();) {
    const bool starts_inside = is_inside(character_at(text, begin));
    const std::size_t end =
        run_end(text, begin, [&](const Character& c) { return is_inside(c) == starts_inside; });
    const std::string_view run = text.substr(begin, end - begin);
    starts_inside ? inside(run) : outside(run);
    begin = end;
  }
}

bool is_number(const Character& c) { return c.is(kNumber); }

// \p{N} on its own, GPT-2 on what lies between.
void visit_smollm_words(std::string_view text, const Visitor& visit) {
  const auto each_alone = [&](std::string_view numbers) {
    visit_words(numbers, visit, [](std::string_view run, std::size_t begin) {
      return begin + character_at(run, begin).size_bytes;
    });
  };
  const auto as_gpt2 = [&](std::string_view run) { visit_words(run, visit, gpt2_word_end); };
  visit_runs(text, is_number, each_alone, as_gpt2);
}

// [0-9][0-9][0-9] on a run of numbers: three ASCII digits in a row, as early as possible, stand alone.
void visit_digit_triples(std::string_view numbers, const Visitor& visit) {
  const auto is_digit = [](const Character& c) { return c.code_point < 128; };
  std::size_t pending = 0;  // what lies before the position and is not visited yet
  for (std::size_t position = 0; position < numbers.size();) {
    const std::size_t end = run_end(numbers, position, is_digit, 3);
    if (end - position < 3) {
      position = std::max(end, position + character_at(numbers, position).size_bytes);
      continue;
    }
    if (position > pending) visit(numbers.substr(pending, position - pending));
    visit(numbers.substr(position, 3));
    position = pending = end;
  }
  if (pending < numbers.size()) visit(numbers.substr(pending));
}

// Four passes, each inside the pieces of the one before: [\p{P}\$\+<=>\^~\|]+, then GPT-2, then \p{N}+,
// then [0-9][0-9][0-9].
void visit_default_words(std::string_view text, const Visitor& visit) {
  const auto is_punctuation = [](const Character& c) {
    constexpr std::string_view kMore = "$+<=>^~|";
    return c.is(kPunctuation) || (c.code_point < 128 && kMore.contains(static_cast<char>(c.code_point)));
  };
  const auto numbers = [&](std::string_view run) { visit_digit_triples(run, visit); };
  const auto word = [&](std::string_view gpt2_word) { visit_runs(gpt2_word, is_number, numbers, visit); };
  const auto piece = [&](std::string_view run) { visit_words(run, word, gpt2_word_end); };
  visit_runs(text, is_punctuation, piece, piece);
}

struct NamedPretokenizer {
  std::string_view name;
  PretokenizerFamily family;
  bool keeps_known_words = false;
  bool adds_bos = false;
};

// Every name that GGUF files use for one of these families. Left out are encoders whose mask or separator
// tokens follow rules of their own (jina-v1, jina-v2, roberta, modern-bert).
constexpr NamedPretokenizer kNames[] = {
    {"", PretokenizerFamily::kDefault},
    {"default", PretokenizerFamily::kDefault},
    {"a.x-4.0", PretokenizerFamily::kGpt2},
    {"exaone4", PretokenizerFamily::kGpt2},
    {"gigachat", PretokenizerFamily::kGpt2},
    {"gpt-2", PretokenizerFamily::kGpt2},
    {"granite-docling", PretokenizerFamily::kGpt2},
    {"jais", PretokenizerFamily::kGpt2},
    {"jina-de", PretokenizerFamily::kGpt2},
    {"jina-es", PretokenizerFamily::kGpt2},
    {"mellum", PretokenizerFamily::kGpt2},
    {"mpt", PretokenizerFamily::kGpt2},
    {"olmo", PretokenizerFamily::kGpt2},
    {"phi-2", PretokenizerFamily::kGpt2},
    {"trillion", PretokenizerFamily::kGpt2},
    {"codeshell", PretokenizerFamily::kSmolLm},
    {"command-r", PretokenizerFamily::kSmolLm},
    {"exaone", PretokenizerFamily::kSmolLm},
    {"mellum2", PretokenizerFamily::kSmolLm},
    {"minerva-7b", PretokenizerFamily::kSmolLm},
    {"refact", PretokenizerFamily::kSmolLm},
    {"smollm", PretokenizerFamily::kSmolLm},
    {"starcoder", PretokenizerFamily::kSmolLm},
    {"chatglm-bpe", PretokenizerFamily::kLlama3},
    {"dbrx", PretokenizerFamily::kLlama3},
    {"smaug-bpe", PretokenizerFamily::kLlama3},
    {"glm4", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true},
    {"glm5", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true},
    {"falcon-h1", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"falcon3", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"jina-v5-nano", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"lfm2", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"llama-bpe", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"llama-v3", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"llama3", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"midm-2.0", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"pixtral", PretokenizerFamily::kLlama3, /*keeps_known_words=*/true, /*adds_bos=*/true},
    {"deepseek-r1-qwen", PretokenizerFamily::kQwen2},
    {"f2llmv2", PretokenizerFamily::kQwen2},
    {"grok-2", PretokenizerFamily::kQwen2},
    {"hunyuan", PretokenizerFamily::kQwen2},
    {"kormo", PretokenizerFamily::kQwen2},
    {"megrez", PretokenizerFamily::kQwen2},
    {"qwen2", PretokenizerFamily::kQwen2},
    {"solar-open", PretokenizerFamily::kQwen2},
    {"stablelm2", PretokenizerFamily::kQwen2},
};

}  // namespace

Result<Pretokenizer> Pretokenizer::create(std::string_view name) {
  const auto* const named = std::ranges::find(kNames, name, &NamedPretokenizer::name);
  if (named == std::end(kNames)) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("tokenizer.ggml.pre '{}' is not a known pre-tokenizer (the families of gpt-2, "
                    "llama-bpe, smollm and qwen2 are supported)",
                    printable(name)));
  }
  Pretokenizer pretokenizer(named->family);
  pretokenizer.keeps_known_words_ = named->keeps_known_words;
  pretokenizer.adds_bos_ = named->adds_bos;
  return pretokenizer;
}

void Pretokenizer::for_each_word(std::string_view text, const Visitor& visit) const {
  switch (family_) {
    case PretokenizerFamily::kGpt2:
      return visit_words(text, visit, gpt2_word_end);
    case PretokenizerFamily::kSmolLm:
      return visit_smollm_words(text, visit);
    case PretokenizerFamily::kLlama3:
      return visit_words(text, visit,
                         [](std::string_view t, std::size_t begin) { return llama3_word_end(t, begin, 3); });
    case PretokenizerFamily::kQwen2:
      return visit_words(text, visit,
                         [](std::string_view t, std::size_t begin) { return llama3_word_end(t, begin, 1); });
    case PretokenizerFamily::kDefault:
      return visit_default_words(text, visit);
  }
}

}  // namespace kvasir::text
