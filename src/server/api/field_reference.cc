#include "server/api/field_reference.h"

#include <fmt/format.h>

#include <limits>

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();

// "0 to 2", "above 0, at most 1", "at least 1"; what only keeps numbers within their type is left out.
std::string describe(const Range& range) {
  const bool has_min = range.min > -kMaxInt32, has_max = range.max < kMaxInt32;
  if (has_min && has_max && !range.is_above_min) return fmt::format("{} to {}", range.min, range.max);
  std::string text;
  if (has_min) text = fmt::format("{} {}", range.is_above_min ? "above" : "at least", range.min);
  if (has_max) text += fmt::format("{}at most {}", text.empty() ? "" : ", ", range.max);
  return text;
}

}  // namespace

void begin_field_table(std::string& reference, std::string_view title) {
  reference += fmt::format("{}:\n\n| field | type | range | meaning |\n|---|---|---|---|\n", title);
}

void append_field(std::string& reference, std::string_view name, std::string_view type, const Range& range,
                  std::string_view meaning) {
  reference += fmt::format("| `{}` | {} | {} | {} |\n", name, type, describe(range), meaning);
}

}  // namespace kvasir::server::api
