#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

namespace kvasir {
namespace {

std::optional<double> unit_bytes(std::string_view unit) {
  std::string lower(unit);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  if (lower.empty() || lower == "b") return 1.0;
  const std::size_t power = std::string_view("kmgt").find(lower[0]) + 1;
  if (power == 0) return std::nullopt;  // find() gave npos
  const std::string_view suffix = std::string_view(lower).substr(1);
  if (suffix.empty() || suffix == "ib") return std::pow(1024.0, static_cast<double>(power));
  if (suffix == "b") return std::pow(1000.0, static_cast<double>(power));
  return std::nullopt;
}

std::unexpected<Error> not_a_size(std::string_view text) {
  return make_error(
      ErrorKind::kUsage,
      fmt::format("'{}' is not a size; write bytes or a number with K, M, G or T, such as 8G", text));
}

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
  double number = 0.0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return not_a_size(text);
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::optional<double> bytes_per_unit = unit_bytes(unit);
  if (!bytes_per_unit) return not_a_size(text);
  const double num_bytes = std::floor(number * *bytes_per_unit);
  if (num_bytes >= 0x1p63) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("size '{}' is beyond the limit of 2^63 - 1 bytes", text));
  }
  return static_cast<std::int64_t>(num_bytes);
}

std::string format_bytes(std::int64_t num_bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double number = static_cast<double>(num_bytes);
  std::size_t unit = 0;
  // 999.5 would print as a fourth digit; the next unit has room for it.
  while (std::abs(number) >= 999.5 && unit + 1 < kUnits.size()) {
    number /= 1024.0;
    ++unit;
  }
  const double magnitude = std::abs(number);
  const int decimals = unit == 0 || magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", number, decimals, kUnits[unit]);
}

}  // namespace kvasir
