#include "cli/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kvasir::cli {

std::string spaced(std::string_view list) {
  std::string out;
  for (const char c : list) {
    out += c;
    if (c == ',') out += ' ';
  }
  return out;
}

// The parser shows it as "TEXT:{f16,f32}", "1 to 4096" or "INT:INT in [1 - 9]".
OptionValue value_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  if (const std::size_t colon = type.find(':'); colon != std::string::npos) type.erase(0, colon + 1);
  if (type.empty()) return {"VALUE", ""};
  if (type.front() == '{') return {"NAME", "one of " + spaced(type.substr(1, type.size() - 2))};
  const bool is_word = std::ranges::all_of(type, [](unsigned char c) { return std::isupper(c) != 0; });
  return is_word ? OptionValue{type, ""} : OptionValue{"N", type};
}

std::string full_description(const CLI::Option& option) {
  std::string out = option.get_description();
  if (option.get_expected_max() > 0) {
    const std::string range = value_of(option).range;
    if (!range.empty()) out += fmt::format("; {}", range);
    const std::string value = option.get_default_str();
    if (!value.empty()) out += fmt::format(" [default: {}]", spaced(value));
  }
  if (option.get_required()) out += " (required)";
  return out;
}

}  // namespace kvasir::cli
