#include "base/lone_surrogates.h"

#include <charconv>
#include <cstdint>

namespace kvasir {
namespace {

constexpr std::size_t kEscapeBytes = 6;  // \ud83d

// The unit of the escape \uXXXX at a place; nothing: none is there.
std::optional<std::uint32_t> escaped_unit(std::string_view json, std::size_t at) {
  if (at > json.size() || json.size() - at < kEscapeBytes) return std::nullopt;
  const std::string_view escape = json.substr(at, kEscapeBytes);
  if (!escape.starts_with("\\u")) return std::nullopt;
  std::uint32_t unit = 0;
  const char* const end = escape.data() + kEscapeBytes;
  const auto read = std::from_chars(escape.data() + 2, end, unit, 16);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return unit;
}

bool is_high(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

std::optional<std::string> with_replaced_lone_surrogates(std::string_view json) {
  std::optional<std::string> replaced;
  std::size_t at = json.find('\\');
  while (at != std::string_view::npos) {
    const auto unit = escaped_unit(json, at);
    std::size_t num_bytes = unit ? kEscapeBytes : 2;
    const auto next = unit && is_high(*unit) ? escaped_unit(json, at + kEscapeBytes) : std::nullopt;
    if (next && is_low(*next)) {
      num_bytes = 2 * kEscapeBytes;
    } else if (unit && (is_high(*unit) || is_low(*unit))) {
      if (!replaced) replaced = json;
      replaced->replace(at, kEscapeBytes, "\\ufffd");
    }
    at = json.find('\\', at + num_bytes);
  }
  return replaced;
}

}  // namespace kvasir
