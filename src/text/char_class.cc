#include "text/char_class.h"

#include <algorithm>
#include <iterator>

namespace kvasir::text::internal {
namespace {

constexpr std::uint32_t kClassBits = 3;
constexpr std::uint32_t kClassMask = (1u << kClassBits) - 1;

}  // namespace

CharClass find_char_class(char32_t code_point) {
  // The last entry that starts at or before the code point; the table starts at code point 0.
  const std::uint32_t key = static_cast<std::uint32_t>(code_point) << kClassBits | kClassMask;
  const auto after = std::upper_bound(kCharClassRanges.begin(), kCharClassRanges.end(), key);
  return static_cast<CharClass>(*std::prev(after) & kClassMask);
}

}  // namespace kvasir::text::internal
