// Names that a flag's value may be, refused with the nearest one.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "base/printable.h"

namespace kvasir::cli {

// For CLI::Option::check.
inline CLI::Validator one_of(std::vector<std::string> names) {
  const std::string listed = fmt::format("{{{}}}", fmt::join(names, ","));
  const auto check = [names = std::move(names), listed](const std::string& text) -> std::string {
    if (std::ranges::find(names, text) != names.end()) return {};
    const std::string_view nearest =
        nearest_name(text, std::vector<std::string_view>(names.begin(), names.end()));
    // The list comes last: a long one may be cut off.
    return fmt::format("'{}' is none of its values{} It takes one of {}", printable(text),
                       nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest), listed);
  };
  return CLI::Validator(check, listed);
}

}  // namespace kvasir::cli
