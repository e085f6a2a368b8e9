#include "text/hf/normalizers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/code_point.h"
#include "text/byte_alphabet.h"
#include "text/char_class.h"
#include "text/hf/library_classes.h"
#include "text/unicode/general_category.h"

namespace kvasir::text::hf {
namespace {

constexpr char32_t kDropped = 0xFFFFFFFF;

// Each character becomes another one, or goes (kDropped).
template <class Map>
std::string map_characters(std::string_view text, Map map) {
  std::string mapped;
  mapped.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    if (const char32_t other = map(code_point); other == code_point) {
      mapped += text.substr(at, size_bytes);
    } else if (other != kDropped) {
      append_utf8(mapped, other);
    }
    at += size_bytes;
  }
  return mapped;
}

char32_t without_mark(char32_t c) { return is_library_mark(c) ? kDropped : c; }
char32_t without_nonspacing_mark(char32_t c) { return is_library_nonspacing_mark(c) ? kDropped : c; }

std::string lowered(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    at += size_bytes;
    if (code_point == 0x130) {  // the one letter whose lower case is two code points
      lower += "i\u0307";
    } else {
      append_utf8(lower, lower_case(code_point));
    }
  }
  return lower;
}

char32_t nmt_character(char32_t c) {
  const auto between = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (between(0x01, 0x08) || c == 0x0B || between(0x0E, 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
    return kDropped;
  const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                        between(0x200B, 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                        c == 0xFFFD;
  return is_space ? U' ' : c;
}

char32_t cleaned(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return U' ';
  if (is_library_dropped(c)) return kDropped;
  return is_white_space(c) ? U' ' : c;
}

// As the library has it: one of the ranges begins 0x100 too late there.
bool is_chinese(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return std::ranges::any_of(kRanges,
                             [c](const auto& range) { return c >= range.first && c <= range.second; });
}

std::string with_spaced_chinese(std::string_view text) {
  std::string spaced;
  spaced.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    const bool is_spaced = is_chinese(code_point);
    if (is_spaced) spaced.push_back(' ');
    spaced += text.substr(at, size_bytes);
    if (is_spaced) spaced.push_back(' ');
    at += size_bytes;
  }
  return spaced;
}

std::string bert_normalized(std::string text, const BertNormalizerOptions& options) {
  if (options.clean_text) text = map_characters(text, cleaned);
  if (options.separate_chinese) text = with_spaced_chinese(text);
  if (options.strip_accents.value_or(options.lowercase)) {
    text = map_characters(to_normal_form(text, NormalForm::kNfd), without_nonspacing_mark);
  }
  return options.lowercase ? lowered(text) : text;
}

std::string stripped(std::string_view text, bool left, bool right) {
  std::size_t begin = 0;
  std::size_t end = 0;  // of the last character that is no white space
  bool has_begun = !left;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    const bool is_space = is_white_space(code_point);
    if (!has_begun && !is_space) begin = at;
    has_begun = has_begun || !is_space;
    at += size_bytes;
    if (!is_space) end = at;
  }
  if (!has_begun) return {};
  if (!right) end = text.size();
  return end > begin ? std::string(text.substr(begin, end - begin)) : std::string();
}

}  // namespace

bool is_white_space(char32_t code_point) { return char_class(code_point) == CharClass::kWhitespace; }

Normalizer normal_form(NormalForm form) {
  return [form](std::string text) { return to_normal_form(text, form); };
}

Normalizer lowercase() {
  return [](std::string text) { return lowered(text); };
}

Normalizer strip_accents() {
  return [](std::string text) { return map_characters(text, without_mark); };
}

Normalizer strip(bool left, bool right) {
  return [left, right](std::string text) { return stripped(text, left, right); };
}

Normalizer replace(MatchFinder find, std::string content) {
  return [find = std::move(find), content = std::move(content)](std::string text) {
    std::string replaced;
    std::size_t plain_begin = 0;
    find(text, [&](std::size_t begin, std::size_t end) {
      replaced.append(text, plain_begin, begin - plain_begin);
      replaced += content;
      plain_begin = end;
    });
    if (plain_begin == 0) return text;
    replaced.append(text, plain_begin);
    return replaced;
  };
}

Normalizer prepend(std::string prefix) {
  return [prefix = std::move(prefix)](std::string text) { return text.empty() ? text : prefix + text; };
}

Normalizer nmt() {
  return [](std::string text) { return map_characters(text, nmt_character); };
}

Normalizer precompiled(Charsmap map) {
  return [map = std::move(map)](std::string text) { return map.normalize(text); };
}

Normalizer bert_normalizer(BertNormalizerOptions options) {
  return [options](std::string text) { return bert_normalized(std::move(text), options); };
}

Normalizer byte_level_normalizer() {
  return [](std::string text) { return encode_byte_alphabet(text); };
}

Normalizer sequence(std::vector<Normalizer> steps) {
  return [steps = std::move(steps)](std::string text) {
    for (const Normalizer& step : steps) text = step(std::move(text));
    return text;
  };
}

}  // namespace kvasir::text::hf
