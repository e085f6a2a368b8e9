// Properties of single code points in Unicode 15.1: category, script, lower case.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kvasir::text {

// In the order of scripts/make_normal_form_tables.py.
enum class GeneralCategory : std::uint8_t {
  kCn,
  kCc,
  kCf,
  kCo,
  kCs,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
};

// A binary search, as for the other functions of this file. Thread safety: all are pure.
GeneralCategory general_category(char32_t code_point);

inline bool is_category_between(char32_t code_point, GeneralCategory first, GeneralCategory last) {
  const GeneralCategory category = general_category(code_point);
  return category >= first && category <= last;
}

// The simple lower-case mapping; a code point without one is its own.
char32_t lower_case(char32_t code_point);

// Every code point with a simple lower case, and that.
void for_each_case_pair(const std::function<void(char32_t upper, char32_t lower)>& visit);

// First and last code points of ranges that ascend and do not touch.
using CodePointRanges = std::vector<std::pair<char32_t, char32_t>>;

// The ranges of a category ("Lu"), a group of them ("L"), or a script ("Han"). Empty: no such name is known.
std::optional<CodePointRanges> property_ranges(std::string_view name);

}  // namespace kvasir::text
