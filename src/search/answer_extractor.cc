#include "search/answer_extractor.h"

#include <cctype>

namespace kvasir::search {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::string> normal_text(std::string_view text) {
  std::string normal;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte) != 0) {
      if (!normal.empty() && normal.back() != ' ') normal += ' ';
    } else {
      normal += byte < 128 ? static_cast<char>(std::tolower(byte)) : c;
    }
  }
  while (!normal.empty() && (normal.back() == ' ' || normal.back() == '.')) normal.pop_back();
  if (normal.empty()) return std::nullopt;
  return normal;
}

// Without leading zeros, and without zeros behind the point.
std::string normal_number(std::string digits, bool is_negative) {
  if (digits.find('.') != digits.npos) {
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
  }
  std::size_t zeros = 0;
  while (zeros + 1 < digits.size() && digits[zeros] == '0' && digits[zeros + 1] != '.') ++zeros;
  digits.erase(0, zeros);
  if (digits.empty() || digits.front() == '.') digits.insert(0, 1, '0');
  return is_negative && digits != "0" ? "-" + digits : digits;
}

// Commas count within a number where three digits follow them.
std::optional<std::string> last_number(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  if (end == 0) return std::nullopt;
  std::string digits;
  std::size_t i = end;
  std::size_t run = 0;  // digits since the last comma
  bool has_point = false;
  while (i > 0) {
    const char c = text[i - 1];
    const bool is_before_digit = i >= 2 && is_digit(text[i - 2]);
    if (is_digit(c)) {
      digits.insert(digits.begin(), c);
      ++run;
    } else if (c == ',' && run == 3 && is_before_digit) {
      run = 0;
    } else if (c == '.' && !has_point && is_before_digit && run > 0) {
      digits.insert(digits.begin(), c);
      has_point = true;
      run = 0;
    } else {
      break;
    }
    --i;
  }
  const bool is_negative = i > 0 && text[i - 1] == '-' && (i == 1 || !is_digit(text[i - 2]));
  return normal_number(std::move(digits), is_negative);
}

}  // namespace

std::optional<std::string> extract_answer(AnswerForm form, std::string_view text) {
  return form == AnswerForm::kNumber ? last_number(text) : normal_text(text);
}

}  // namespace kvasir::search
