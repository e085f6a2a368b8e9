#include "text/hf/library_classes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace kvasir::text::hf {
namespace {

struct CodePointRange {
  char32_t first;
  char32_t last;
};

#include "text/hf/library_classes_table.inc"
#include "text/hf/library_scripts_table.inc"

// Each run lasts until the next; an entry is its first code point << 8 | number.
constexpr std::uint32_t kScriptBits = 8;
constexpr std::uint32_t kScriptMask = (1u << kScriptBits) - 1;

bool in_class(std::span<const CodePointRange> ranges, char32_t code_point) {
  const auto range = std::ranges::lower_bound(ranges, code_point, {}, &CodePointRange::last);
  return range != ranges.end() && code_point >= range->first;
}

}  // namespace

bool is_library_punctuation(char32_t code_point) { return in_class(kLibraryPunctuation, code_point); }
bool is_library_mark(char32_t code_point) { return in_class(kLibraryMarks, code_point); }
bool is_library_nonspacing_mark(char32_t code_point) { return in_class(kLibraryNonspacing, code_point); }
bool is_library_dropped(char32_t code_point) {
  return code_point == 0 || in_class(kLibraryDropped, code_point);
}

std::uint32_t library_script(char32_t code_point) {
  const std::uint32_t key = static_cast<std::uint32_t>(code_point) << kScriptBits | kScriptMask;
  return *std::prev(std::ranges::upper_bound(kLibraryScriptRuns, key)) & kScriptMask;
}

}  // namespace kvasir::text::hf
