// How one value is laid out: what both formatting languages reduce their directives to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/runtime.h"

namespace kvasir::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;   // < > ^ =, 0: by type
  char sign = '-';  // - + or space
  bool alternate = false;
  char grouping = 0;  // , or _ between thousands
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char type = 0;  // 0: by value
};

// [[fill]align][sign][#][0][width][grouping][.precision][type]
Result<FormatSpec> parse_format_spec(std::string_view text);

// Reads digits off the front of text. Errors (kUnmet): more than 9 digits.
Result<std::size_t> take_number(std::string_view& text);

// Errors (kUsage): a type that the value has no form in.
Result<std::string> format_value(Runtime& runtime, const Value& value, const FormatSpec& spec);
Result<std::string> format_text(Runtime& runtime, std::string_view text, const FormatSpec& spec);
Result<std::string> format_integer(Runtime& runtime, std::int64_t value, const FormatSpec& spec);
Result<std::string> format_float(Runtime& runtime, double value, const FormatSpec& spec);

}  // namespace kvasir::jinja
