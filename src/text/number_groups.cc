#include "text/number_groups.h"

#include <cstddef>

#include "text/character.h"
#include "text/character_ranges.h"

namespace kvasir::text {
namespace {

constexpr std::size_t kGroup = 3;

// \p{Nd}, of which Character knows that they are numbers.
constexpr std::string_view kDigits =
    "0-9\u0660-\u0669\u06F0-\u06F9\u07C0-\u07C9\u0966-\u096F\u09E6-\u09EF\u0A66-\u0A6F\u0AE6-\u0AEF"
    "\u0B66-\u0B6F\u0BE6-\u0BEF\u0C66-\u0C6F\u0CE6-\u0CEF\u0D66-\u0D6F\u0DE6-\u0DEF\u0E50-\u0E59"
    "\u0ED0-\u0ED9\u0F20-\u0F29\u1040-\u1049\u1090-\u1099\u17E0-\u17E9\u1810-\u1819\u1946-\u194F"
    "\u19D0-\u19D9\u1A80-\u1A89\u1A90-\u1A99\u1B50-\u1B59\u1BB0-\u1BB9\u1C40-\u1C49\u1C50-\u1C59"
    "\uA620-\uA629\uA8D0-\uA8D9\uA900-\uA909\uA9D0-\uA9D9\uA9F0-\uA9F9\uAA50-\uAA59\uABF0-\uABF9"
    "\uFF10-\uFF19\U000104A0-\U000104A9\U00010D30-\U00010D39\U00010D40-\U00010D49\U00011066-\U0001106F"
    "\U000110F0-\U000110F9\U00011136-\U0001113F\U000111D0-\U000111D9\U000112F0-\U000112F9"
    "\U00011450-\U00011459\U000114D0-\U000114D9\U00011650-\U00011659\U000116C0-\U000116C9"
    "\U000116D0-\U000116E3\U00011730-\U00011739\U000118E0-\U000118E9\U00011950-\U00011959"
    "\U00011BF0-\U00011BF9\U00011C50-\U00011C59\U00011D50-\U00011D59\U00011DA0-\U00011DA9"
    "\U00011DE0-\U00011DE9\U00011F50-\U00011F59\U00016130-\U00016139\U00016A60-\U00016A69"
    "\U00016AC0-\U00016AC9\U00016B50-\U00016B59\U00016D70-\U00016D79\U0001CCF0-\U0001CCF9"
    "\U0001D7CE-\U0001D7FF\U0001E140-\U0001E149\U0001E2F0-\U0001E2F9\U0001E4F0-\U0001E4F9"
    "\U0001E5F1-\U0001E5FA\U0001E950-\U0001E959\U0001FBF0-\U0001FBF9";

bool is_decimal_digit(const Character& c) { return c.is_number() && in_ranges(kDigits, c.code_point); }

// \p{Nl}, \p{Pc}, and as Oniguruma has \w six numbers of Latin-1 and letters in circles and squares.
constexpr std::string_view kOtherWordCharacters =
    "\u00B2\u00B3\u00B9\u00BC-\u00BE\u16EE-\u16F0\u2160-\u2182\u2185-\u2188\u24B6-\u24E9\u3007\u3021-\u3029\u3038-\u303A"
    "\uA6E6-\uA6EF\U00010140-\U00010174\U00010341\U0001034A\U000103D1-\U000103D5\U00012400-\U0001246E\U0001F130-\U0001F149"
    "\U0001F150-\U0001F169\U0001F170-\U0001F189_\u203F\u2040\u2054\uFE33\uFE34\uFE4D-\uFE4F\uFF3F";

// \w
bool is_word_character(const Character& c) {
  return c.is_letter() || c.is_mark() || is_decimal_digit(c) || in_ranges(kOtherWordCharacters, c.code_point);
}

std::size_t digits_end(std::string_view text, std::size_t begin, std::size_t most = std::string_view::npos) {
  return run_end(text, begin, is_decimal_digit, most);
}

// The first group has one to three digits, all others have three.
void visit_groups(std::string_view digits, const VisitWord& visit) {
  std::size_t num_digits = 0;
  for (std::size_t at = 0; at < digits.size(); ++num_digits) at = digits_end(digits, at, 1);
  std::size_t length = num_digits % kGroup == 0 ? kGroup : num_digits % kGroup;
  for (std::size_t begin = 0; begin < digits.size(); length = kGroup) {
    const std::size_t end = digits_end(digits, begin, length);
    visit(digits.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace

void visit_grouped_digits(std::string_view text, const VisitWord& group, const VisitWord& between) {
  std::size_t pending = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = digits_end(text, begin);
    if (end == begin) {
      begin += character_at(text, begin).size_bytes;
      continue;
    }
    if (!is_word_character(character_at(text, end))) {
      if (begin > pending) between(text.substr(pending, begin - pending));
      visit_groups(text.substr(begin, end - begin), group);
      pending = end;
    }
    begin = end;
  }
  if (pending < text.size()) between(text.substr(pending));
}

void visit_grouped_numbers(std::string_view text, const VisitWord& visit) {
  std::size_t pending = 0;
  const auto flush = [&](std::size_t end) {
    if (end > pending) visit(text.substr(pending, end - pending));
    pending = end;
  };
  bool in_number = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const Character c = character_at(text, begin);
    if (c.is_number() != in_number) flush(begin);
    in_number = c.is_number();
    const std::size_t end = digits_end(text, begin);
    if (end == begin) {
      begin += c.size_bytes;
      continue;
    }
    std::size_t num_digits = 0;
    for (std::size_t at = begin; at < end; at = digits_end(text, at, 1)) ++num_digits;
    for (std::size_t at = begin; at < end; at = digits_end(text, at, 1), --num_digits) {
      if (num_digits % kGroup == 0) flush(at);
    }
    begin = end;
  }
  flush(text.size());
}

}  // namespace kvasir::text
