// The answer within a text, in a form in which equal answers are equal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::search {

enum class AnswerForm : std::uint8_t {
  kText,    // the whole text; case and spaces do not count
  kNumber,  // the last number in it: "1,200.50" and "1200.5" are the same
};

// Nothing where the text has no such answer.
std::optional<std::string> extract_answer(AnswerForm form, std::string_view text);

}  // namespace kvasir::search
