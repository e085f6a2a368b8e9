#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/code_point.h"
#include "text/unicode/normal_form.h"

namespace kvasir::text {
namespace {

#include "text/unicode/grapheme_break_table.inc"

// In the order of scripts/make_normal_form_tables.py.
enum class GraphemeBreak : std::uint8_t {
  kAny,
  kCr,
  kLf,
  kControl,
  kExtend,
  kZwj,
  kRegionalIndicator,
  kPrepend,
  kSpacingMark,
  kL,
  kV,
  kT,
  kLv,
  kLvt,
  kEmoji,  // Extended_Pictographic
};
using enum GraphemeBreak;

constexpr std::uint32_t kBreakBits = 5;
constexpr std::uint32_t kBreakMask = (1u << kBreakBits) - 1;

GraphemeBreak break_of(char32_t code_point) {
  const std::uint32_t key = static_cast<std::uint32_t>(code_point) << kBreakBits | kBreakMask;
  const auto* const next = std::upper_bound(std::begin(kBreakRuns), std::end(kBreakRuns), key);
  return static_cast<GraphemeBreak>(*std::prev(next) & kBreakMask);
}

bool is_control(GraphemeBreak kind) { return kind == kCr || kind == kLf || kind == kControl; }

// Rules GB3 to GB9b, for neighbours that need no memory.
bool joins(GraphemeBreak left, GraphemeBreak right) {
  if (left == kCr && right == kLf) return true;
  if (is_control(left) || is_control(right)) return false;
  if (left == kL && (right == kL || right == kV || right == kLv || right == kLvt)) return true;
  if ((left == kLv || left == kV) && (right == kV || right == kT)) return true;
  if ((left == kLvt || left == kT) && right == kT) return true;
  return right == kExtend || right == kZwj || right == kSpacingMark || left == kPrepend;
}

}  // namespace

std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  auto [code_point, size_bytes] = code_point_at(text, begin);
  std::size_t end = begin + size_bytes;
  GraphemeBreak left = break_of(code_point);
  bool after_emoji = left == kEmoji;               // an emoji and extensions of it so far (GB11)
  bool is_half_flag = left == kRegionalIndicator;  // GB12
  while (end < text.size()) {
    const CodePoint next = code_point_at(text, end);
    const GraphemeBreak right = break_of(next.value);
    const bool is_emoji_pair = after_emoji && left == kZwj && right == kEmoji;
    const bool is_flag = is_half_flag && left == kRegionalIndicator && right == kRegionalIndicator;
    if (!joins(left, right) && !is_emoji_pair && !is_flag) break;
    is_half_flag = right == kRegionalIndicator && !is_flag;
    after_emoji = right == kEmoji || (after_emoji && (right == kExtend || right == kZwj));
    left = right;
    end += next.size_bytes;
  }
  return end;
}

}  // namespace kvasir::text
