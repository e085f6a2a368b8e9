#include "base/env.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/units.h"

namespace kvasir {

std::optional<std::string> env_string(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<std::optional<std::int64_t>> env_integer(const char* name, std::int64_t min, std::int64_t max) {
  const std::optional<std::string> text = env_string(name);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end || number < min || number > max) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} must be an integer from {} to {}, got '{}'", name, min, max, *text),
                      name);
  }
  return number;
}

Result<std::optional<bool>> env_flag(const char* name) {
  const std::optional<std::string> text = env_string(name);
  if (!text) return std::nullopt;
  if (const std::optional<bool> on = parse_switch(*text)) return on;
  return make_error(ErrorKind::kUsage, fmt::format("{} must be 1 or 0, got '{}'", name, *text), name);
}

Result<std::optional<std::int64_t>> env_bytes(const char* name) {
  const std::optional<std::string> text = env_string(name);
  if (!text) return std::nullopt;
  Result<std::int64_t> num_bytes = parse_bytes(*text);
  if (!num_bytes) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: {}", name, num_bytes.error().message), name);
  }
  return *num_bytes;
}

std::optional<bool> parse_switch(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (lower == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (lower == no) return false;
  }
  return std::nullopt;
}

}  // namespace kvasir
