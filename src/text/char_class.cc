#include "text/char_class.h"

#include <algorithm>
#include <iterator>

namespace kvasir::text::internal {
namespace {

constexpr std::uint32_t kClassBits = 3;
constexpr std::uint32_t kClassMask = (1u << kClassBits) - 1;

// The class in the last entry that starts at or before the code point; a table starts at code point 0.
std::uint32_t find_in(std::span<const std::uint32_t> ranges, char32_t code_point) {
  const std::uint32_t key = static_cast<std::uint32_t>(code_point) << kClassBits | kClassMask;
  return *std::prev(std::upper_bound(ranges.begin(), ranges.end(), key)) & kClassMask;
}

}  // namespace

CharClass find_char_class(char32_t code_point) {
  return static_cast<CharClass>(find_in(kCharClassRanges, code_point));
}

}  // namespace kvasir::text::internal

namespace kvasir::text {

CharCase char_case(char32_t code_point) {
  return static_cast<CharCase>(internal::find_in(internal::kCharCaseRanges, code_point));
}

}  // namespace kvasir::text
