#include "text/pattern_passes.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "text/character.h"
#include "text/character_ranges.h"
#include "text/word_end.h"

namespace kvasir::text {
namespace {

template <class Predicate>
std::size_t one_or_none(std::string_view text, std::size_t begin, Predicate predicate) {
  return run_end(text, begin, predicate, 1);
}

// \s?X+
template <class Predicate>
std::size_t spaced_run_end(std::string_view text, std::size_t begin, Predicate predicate) {
  const std::size_t body = one_or_none(text, begin,
                                       [](const Character& c) { return c.is(CharClass::kWhitespace); });
  const std::size_t end = run_end(text, body, predicate);
  if (end > body) return end;
  return run_end(text, begin, predicate);  // X may hold white space itself
}

std::size_t one_line_break_end(std::string_view text, std::size_t begin) {
  return one_or_none(text, begin, [](const Character& c) { return c.is_line_break(); });
}
std::size_t one_number_end(std::string_view text, std::size_t begin) {
  return one_or_none(text, begin, [](const Character& c) { return c.is_number(); });
}
std::size_t three_numbers_end(std::string_view text, std::size_t begin) {
  return run_end(
      text, begin, [](const Character& c) { return c.is_number(); }, 3);
}
std::size_t numbers_end(std::string_view text, std::size_t begin) {
  return class_run_end(text, begin, CharClass::kNumber);
}

// [0-9][0-9][0-9]
std::size_t digit_triple_end(std::string_view text, std::size_t begin) {
  const auto is_digit = [](const Character& c) { return c.code_point >= '0' && c.code_point <= '9'; };
  const std::size_t end = run_end(text, begin, is_digit, 3);
  return end == begin + 3 ? end : begin;
}

// [^\n]+|[\n]+
std::size_t line_end(std::string_view text, std::size_t begin) {
  const bool is_feed = text[begin] == '\n';
  const std::size_t end = is_feed ? text.find_first_not_of('\n', begin) : text.find('\n', begin);
  return std::min(end, text.size());
}

std::size_t qwen2_end(std::string_view text, std::size_t begin) {
  return word_end(text, begin, {.max_digits = 1});
}
// Llama 3 with \p{N}+
std::size_t minicpm5_end(std::string_view text, std::size_t begin) {
  return word_end(text, begin, {.max_digits = std::string_view::npos});
}

// DeepSeek LLM's letters with case, in scripts that have it.
constexpr std::string_view kCasedLetters =
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-"
    "ἕἘ-"
    "Ἕἠ-"
    "ὅὈ-Ὅ"
    "ὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-"
    "ꚛꜢ-"
    "ꝯꝱ-"
    "ꞇ"
    "Ꞌ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-"
    "𞥃";
// Their marks, in ASCII (with letters between them) and beyond.
constexpr std::string_view kDeepSeekMarks = "!-/:-~！-／：-～‘-‟　-。";
constexpr std::string_view kHanAndHangul = "一-龥ࠀ-一가-퟿";
constexpr std::string_view kHanAndKana = "一-龥぀-ゟ゠-ヿ";

std::size_t deepseek_cased_end(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin,
                        [](const Character& c) { return in_ranges(kCasedLetters, c.code_point); });
}
std::size_t deepseek_marks_end(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin,
                        [](const Character& c) { return in_ranges(kDeepSeekMarks, c.code_point); });
}
std::size_t spaced_letters_end(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin, [](const Character& c) { return c.is_letter(); });
}
std::size_t spaced_punctuation_end(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin, [](const Character& c) { return c.is(CharClass::kPunctuation); });
}
std::size_t han_and_hangul_end(std::string_view text, std::size_t begin) {
  return run_end(text, begin, [](const Character& c) { return in_ranges(kHanAndHangul, c.code_point); });
}
std::size_t han_and_kana_end(std::string_view text, std::size_t begin) {
  return run_end(text, begin, [](const Character& c) { return in_ranges(kHanAndKana, c.code_point); });
}

// \s+$ . Looks from the end, for a run that ends elsewhere would be walked once for each of its characters.
std::size_t last_whitespace_end(std::string_view text, std::size_t begin) {
  const auto is_space = [](const Character& c) { return c.is(CharClass::kWhitespace); };
  if (!is_space(character_at(text, begin))) return begin;
  if (is_space(character_at(text, begin + character_at(text, begin).size_bytes)) && begin > 0) {
    std::size_t before = begin - 1;
    while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
    if (is_space(character_at(text, before))) return begin;  // the run's first character has been asked
  }
  const std::size_t end = run_end(text, begin, is_space);
  return end == text.size() ? end : begin;
}

bool is_ascii_letter(const Character& c) {
  return (c.code_point >= 'a' && c.code_point <= 'z') || (c.code_point >= 'A' && c.code_point <= 'Z');
}
bool is_ascii_mark(const Character& c) {
  return c.code_point > ' ' && c.code_point < 127 && !is_ascii_letter(c) &&
         !(c.code_point >= '0' && c.code_point <= '9');
}
// [\p{P}\p{S}]
bool is_visible_mark(const Character& c) {
  return c.is(CharClass::kPunctuation) || c.letter_case() == CharCase::kSymbol;
}

// [!-/:-@[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+ ; `begin` when nothing fits
std::size_t letters_or_marks_end(std::string_view text, std::size_t begin) {
  const Character first = character_at(text, begin);
  const std::size_t second = begin + first.size_bytes;
  if (is_ascii_mark(first)) {
    if (const std::size_t end = run_end(text, second, is_ascii_letter); end > second) return end;
  }
  const auto is_letter = [](const Character& c) { return c.is_letter() || c.is_mark(); };
  if (is_letter(first)) return run_end(text, begin, is_letter);
  if (!first.is_line_break() && !is_visible_mark(first)) {
    if (const std::size_t end = run_end(text, second, is_letter); end > second) return end;
  }
  const std::size_t body = text[begin] == ' ' ? second : begin;
  const std::size_t end = run_end(text, body, is_visible_mark);
  return end > body ? end : begin;
}

// The same, with [\r\n]* behind marks, then \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t deepseek3_end(std::string_view text, std::size_t begin) {
  if (const std::size_t end = letters_or_marks_end(text, begin); end > begin) {
    const std::size_t body = begin + (text[begin] == ' ' ? 1 : 0);
    const bool has_marks = run_end(text, body, is_visible_mark) == end;
    return has_marks ? run_end(text, end, [](const Character& c) { return c.is_line_break(); }) : end;
  }
  if (!character_at(text, begin).is(CharClass::kWhitespace)) return begin;
  if (const std::size_t end = line_breaks_end(text, begin); end > begin) return end;
  return whitespace_word_end(text, begin);
}

// The same, then [\r\n]|\s+(?!\S)|\s+
std::size_t spark_end(std::string_view text, std::size_t begin) {
  if (const std::size_t end = letters_or_marks_end(text, begin); end > begin) return end;
  const Character first = character_at(text, begin);
  if (!first.is(CharClass::kWhitespace)) return begin;
  return first.is_line_break() ? begin + first.size_bytes : whitespace_word_end(text, begin);
}

// [가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+
std::size_t asian_run_end(std::string_view text, std::size_t begin) {
  constexpr std::string_view kScripts[] = {"\uAC00-\uD7A3\u3131-\u318E",
                                           "！…“”‘’—：；，\u3001-\u303F\uFE30-\uFE4F", "\u3105-\u312F",
                                           "\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF"};
  for (const std::string_view script : kScripts) {
    const std::size_t end = run_end(text, begin,
                                    [&](const Character& c) { return in_ranges(script, c.code_point); });
    if (end > begin) return end;
  }
  return begin;
}

// GPT-4o's with every number alone
std::size_t youtu_end(std::string_view text, std::size_t begin) {
  return word_end(text, begin,
                  {.contractions = WordRules::Contractions::kAttached,
                   .letters = WordRules::Letters::kCased,
                   .after_symbols = WordRules::AfterSymbols::kBreaksAndSlash,
                   .max_digits = 1});
}

// [\p{P}\$\+<=>\^~\|`]+
std::size_t falcon_marks_end(std::string_view text, std::size_t begin) {
  return run_end(text, begin, [](const Character& c) {
    constexpr std::string_view kMore = "$+<=>^~|`";
    return c.is(CharClass::kPunctuation) ||
           (c.code_point < 128 && kMore.contains(static_cast<char>(c.code_point)));
  });
}

// ` ?[^(\s|.,!?…。，、।۔،)]+`
std::size_t bloom_end(std::string_view text, std::size_t begin) {
  const auto is_part = [](const Character& c) {
    return !c.is(CharClass::kWhitespace) && !in_ranges("(|.,!?…。，、।۔،)", c.code_point);
  };
  const std::size_t body = begin + (text[begin] == ' ' ? 1 : 0);
  const std::size_t end = run_end(text, body, is_part);
  return end > body ? end : begin;
}

// [一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+
std::size_t afmoe_script_end(std::string_view text, std::size_t begin) {
  constexpr std::string_view kScripts =
      "\u4E00-\u9FFF\u3400-\u4DBF\uF900-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF\u0E40-"
      "\u0E7F"
      "\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF";
  return run_end(text, begin, [&](const Character& c) { return in_ranges(kScripts, c.code_point); });
}

// [\t\n]|    |  (four spaces or two)
std::size_t chameleon_space_end(std::string_view text, std::size_t begin) {
  if (text[begin] == '\t' || text[begin] == '\n') return begin + 1;
  const std::size_t end = run_end(
      text, begin, [](const Character& c) { return c.code_point == ' '; }, 4);
  return begin + (end - begin) / 2 * 2;
}

// [\p{P}!-/:-@\[-`{-~]
std::size_t one_mark_end(std::string_view text, std::size_t begin) {
  return one_or_none(text, begin,
                     [](const Character& c) { return c.is(CharClass::kPunctuation) || is_ascii_mark(c); });
}

constexpr MatchEnd kAfmoePasses[] = {afmoe_script_end, deepseek3_end};
constexpr MatchEnd kChameleonPasses[] = {chameleon_space_end, one_number_end, one_mark_end, gpt2_word_end};
constexpr MatchEnd kMiniCpm5Passes[] = {three_numbers_end, minicpm5_end};
constexpr MatchEnd kLagunaPasses[] = {line_end, qwen2_end};
constexpr MatchEnd kDeepSeekLlmPasses[] = {one_line_break_end,  deepseek_cased_end, deepseek_marks_end,
                                           last_whitespace_end, han_and_hangul_end, numbers_end};
constexpr MatchEnd kDeepSeekCoderPasses[] = {one_line_break_end, spaced_letters_end, spaced_punctuation_end,
                                             han_and_hangul_end, one_number_end};
constexpr MatchEnd kDeepSeekV3Passes[] = {three_numbers_end, han_and_kana_end, deepseek3_end};
constexpr MatchEnd kSparkPasses[] = {three_numbers_end, han_and_kana_end, spark_end, one_number_end};
constexpr MatchEnd kYoutuPasses[] = {asian_run_end, youtu_end};
constexpr MatchEnd kFalconPasses[] = {falcon_marks_end, gpt2_word_end, digit_triple_end};
constexpr MatchEnd kBloomPasses[] = {bloom_end};
constexpr MatchEnd kVikingPasses[] = {bloom_end, one_number_end};

}  // namespace

std::span<const MatchEnd> passes_of(PretokenizerFamily family) {
  switch (family) {
    case PretokenizerFamily::kAfmoe:
      return kAfmoePasses;
    case PretokenizerFamily::kChameleon:
      return kChameleonPasses;
    case PretokenizerFamily::kMiniCpm5:
      return kMiniCpm5Passes;
    case PretokenizerFamily::kLaguna:
      return kLagunaPasses;
    case PretokenizerFamily::kDeepSeekLlm:
      return kDeepSeekLlmPasses;
    case PretokenizerFamily::kDeepSeekCoder:
      return kDeepSeekCoderPasses;
    case PretokenizerFamily::kDeepSeekV3:
      return kDeepSeekV3Passes;
    case PretokenizerFamily::kSpark:
      return kSparkPasses;
    case PretokenizerFamily::kYoutu:
      return kYoutuPasses;
    case PretokenizerFamily::kFalcon:
      return kFalconPasses;
    case PretokenizerFamily::kViking:
      return kVikingPasses;
    default:
      CHECK(family == PretokenizerFamily::kBloom);
      return kBloomPasses;
  }
}

void visit_passes(std::string_view text, std::span<const MatchEnd> passes,
                  const std::function<void(std::string_view)>& visit) {
  if (passes.empty()) return visit(text);
  const auto go_on = [&](std::size_t begin, std::size_t end) {
    if (end > begin) visit_passes(text.substr(begin, end - begin), passes.subspan(1), visit);
  };
  std::size_t pending = 0;  // what lies before the position and has matched nothing
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t end = passes.front()(text, position);
    if (end == position) {
      position += character_at(text, position).size_bytes;
      continue;
    }
    go_on(pending, position);
    go_on(position, end);
    position = pending = end;
  }
  go_on(pending, text.size());
}

}  // namespace kvasir::text
