#include "base/oversized_integers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace kvasir {
namespace {

constexpr std::string_view kNumberBytes = "+-.0123456789Ee";

bool is_beyond_64_bits(std::string_view number) {
  const std::string_view digits = number.substr(number.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const char* const end = number.data() + number.size();
  std::int64_t integer = 0;
  std::uint64_t natural = 0;
  return std::from_chars(number.data(), end, integer).ec == std::errc::result_out_of_range &&
         std::from_chars(number.data(), end, natural).ec != std::errc();
}

// Behind the quote that ends the string that begins at `at`.
std::size_t end_of_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

}  // namespace

std::optional<std::string> with_oversized_integers_as_fractions(std::string_view json) {
  std::optional<std::string> changed;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] == '"') {
      at = end_of_string(json, at);
      continue;
    }
    const std::size_t end = std::min(json.find_first_not_of(kNumberBytes, at), json.size());
    if (end == at) {
      ++at;
      continue;
    }
    if (is_beyond_64_bits(json.substr(at, end - at))) {
      if (!changed) changed.emplace();
      changed->append(json.substr(copied, end - copied)).append("e0");
      copied = end;
    }
    at = end;
  }
  if (changed) changed->append(json.substr(copied));
  return changed;
}

}  // namespace kvasir
