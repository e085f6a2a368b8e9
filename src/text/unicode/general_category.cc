#include "text/unicode/general_category.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>

namespace kvasir::text {
namespace {

struct LowerRun {
  char32_t first;
  char32_t last;
  std::uint32_t step;
  std::int32_t difference;
};

#include "text/unicode/general_category_table.inc"
#include "text/unicode/lower_case_table.inc"
#include "text/unicode/script_table.inc"

constexpr std::uint32_t kRunBits = 5;
constexpr std::uint32_t kRunMask = (1u << kRunBits) - 1;
constexpr char32_t kLastCodePoint = 0x10FFFF;

// Each run lasts until the next; an entry is its first code point << 5 | number.
std::uint32_t number_in_runs(std::span<const std::uint32_t> runs, char32_t code_point) {
  const std::uint32_t key = static_cast<std::uint32_t>(code_point) << kRunBits | kRunMask;
  return *std::prev(std::upper_bound(runs.begin(), runs.end(), key)) & kRunMask;
}

template <class IsWanted>
CodePointRanges ranges_of(std::span<const std::uint32_t> runs, IsWanted is_wanted) {
  CodePointRanges ranges;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!is_wanted(runs[i] & kRunMask)) continue;
    const char32_t first = runs[i] >> kRunBits;
    const char32_t last = i + 1 < runs.size() ? (runs[i + 1] >> kRunBits) - 1 : kLastCodePoint;
    if (!ranges.empty() && ranges.back().second + 1 == first) {
      ranges.back().second = last;
    } else {
      ranges.emplace_back(first, last);
    }
  }
  return ranges;
}

// In the order of GeneralCategory.
constexpr std::string_view kCategoryNames[] = {"Cn", "Cc", "Cf", "Co", "Cs", "Lu", "Ll", "Lt", "Lm", "Lo",
                                               "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
                                               "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp"};

// Numbers start at 1, in the order of scripts/make_normal_form_tables.py.
constexpr std::string_view kScriptNames[] = {
    "Arabic",  "Armenian", "Bengali",  "Bopomofo", "Cyrillic", "Devanagari", "Georgian",
    "Greek",   "Gujarati", "Gurmukhi", "Han",      "Hangul",   "Hebrew",     "Hiragana",
    "Kannada", "Katakana", "Khmer",    "Lao",      "Latin",    "Malayalam",  "Myanmar",
    "Sinhala", "Tamil",    "Telugu",   "Thai",     "Tibetan",  "Common",     "Inherited"};

constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {
    {"Letter", "L"},
    {"Mark", "M"},
    {"Number", "N"},
    {"Punctuation", "P"},
    {"Symbol", "S"},
    {"Separator", "Z"},
    {"Other", "C"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Decimal_Number", "Nd"},
    {"Nonspacing_Mark", "Mn"},
};

}  // namespace

GeneralCategory general_category(char32_t code_point) {
  return static_cast<GeneralCategory>(number_in_runs(kCategoryRuns, code_point));
}

char32_t lower_case(char32_t code_point) {
  if (code_point < 0x80) return code_point >= 'A' && code_point <= 'Z' ? code_point + 0x20 : code_point;
  const auto* const run = std::ranges::lower_bound(kLowerRuns, code_point, {}, &LowerRun::last);
  if (run == std::end(kLowerRuns) || code_point < run->first) return code_point;
  if ((code_point - run->first) % run->step != 0) return code_point;
  return static_cast<char32_t>(static_cast<std::int32_t>(code_point) + run->difference);
}

void for_each_case_pair(const std::function<void(char32_t upper, char32_t lower)>& visit) {
  for (const LowerRun& run : kLowerRuns) {
    for (char32_t upper = run.first; upper <= run.last; upper += run.step) visit(upper, lower_case(upper));
  }
}

std::optional<CodePointRanges> property_ranges(std::string_view name) {
  for (const auto& [long_name, short_name] : kLongNames) {
    if (name == long_name) name = short_name;
  }
  const auto is_named = [&](std::uint32_t number) {
    return kCategoryNames[number] == name ||
           (name.size() == 1 && kCategoryNames[number].front() == name.front());
  };
  CodePointRanges ranges = ranges_of(kCategoryRuns, is_named);
  if (!ranges.empty()) return ranges;
  const auto* const script = std::ranges::find(kScriptNames, name);
  if (script == std::end(kScriptNames)) return std::nullopt;
  const auto wanted = static_cast<std::uint32_t>(script - std::begin(kScriptNames)) + 1;
  return ranges_of(kScriptRuns, [&](std::uint32_t number) { return number == wanted; });
}

}  // namespace kvasir::text
