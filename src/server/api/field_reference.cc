#include "server/api/field_reference.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();

// "0 to 2", "above 0, at most 1", "at least 1".
std::string describe(const Range& range) {
  const std::optional<double> min = shown_min(range), max = shown_max(range);
  if (min && max && !range.is_above_min) return fmt::format("{} to {}", *min, *max);
  std::string text;
  if (min) text = fmt::format("{} {}", range.is_above_min ? "above" : "at least", *min);
  if (max) text += fmt::format("{}at most {}", text.empty() ? "" : ", ", *max);
  return text;
}

void append_rows(std::string& reference, std::string_view title, const std::vector<FieldRow>& rows) {
  reference += fmt::format("{}:\n\n| field | type | range | meaning |\n|---|---|---|---|\n", title);
  for (const FieldRow& row : rows) {
    reference += fmt::format("| `{}` | {} | {} | {} |\n", row.name, row.type, describe(row.range), row.meaning);
  }
  reference += "\n";
}

}  // namespace

std::optional<double> shown_min(const Range& range) {
  return range.min > -kMaxInt32 ? std::optional(range.min) : std::nullopt;
}

std::optional<double> shown_max(const Range& range) {
  return range.max < kMaxInt32 ? std::optional(range.max) : std::nullopt;
}

void append_fields(std::string& reference, const FieldTable& table) {
  if (!table.remark.empty()) {
    reference += fmt::format("{}\n\n", table.remark);
    return;
  }
  append_rows(reference, table.title, table.own);
  if (!table.members.empty()) append_rows(reference, fmt::format("Members of `{}`", table.object), table.members);
}

}  // namespace kvasir::server::api
