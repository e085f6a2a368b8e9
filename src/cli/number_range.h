// Limits of the numbers that flags take. A value outside is refused in one short line that names the limits
// and the value.
#pragma once

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <charconv>
#include <concepts>
#include <string>
#include <system_error>

#include "base/printable.h"

namespace kvasir::cli {

// A decimal number in [min, max], for CLI::Option::transform: what it hands on has no leading zeros, which
// the parser would read as octal.
template <std::integral T>
CLI::Validator whole_number(T min, T max) {
  const auto rewrite = [min, max](std::string& text) -> std::string {
    T value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
      return fmt::format("takes a whole number from {} to {}, not '{}'", min, max, printable(text));
    }
    text = fmt::format("{}", value);
    return {};
  };
  return CLI::Validator(rewrite, fmt::format("{} to {}", min, max));
}

// Any number but infinity and NaN, as a float holds it, for CLI::Option::check. Ranges within are the
// engine's.
CLI::Validator finite_number();

}  // namespace kvasir::cli
