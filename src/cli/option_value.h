// How help and manual pages show the value that an option takes.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>

namespace kvasir::cli {

struct OptionValue {
  std::string word;   // "NAME", "N"
  std::string range;  // "one of exact, gate", "1 to 4096"; empty: anything
};

// A space behind each comma, so that a line may be broken there.
std::string spaced(std::string_view list);

OptionValue value_of(const CLI::Option& option);

// The option's description with its range, its default and whether it is required.
std::string full_description(const CLI::Option& option);

}  // namespace kvasir::cli
