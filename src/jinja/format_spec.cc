#include "jinja/format_spec.h"

#include <fmt/format.h>

#include <cmath>

#include "base/code_point.h"
#include "jinja/number.h"
#include "jinja/python_string.h"
#include "jinja/text_form.h"

namespace kvasir::jinja {
namespace {

constexpr std::string_view kAlignments = "<>^=";

bool is_alignment(std::string_view text, std::size_t at) {
  return at < text.size() && kAlignments.find(text[at]) != std::string_view::npos;
}

// Pads `sign + body` to the width; `=` puts the fill between the two.
Result<std::string> padded(Runtime& runtime, std::string_view sign, std::string_view body,
                           const FormatSpec& spec, char default_align) {
  const std::size_t length = sign.size() + num_code_points(body);
  const std::size_t padding = spec.width > length ? spec.width - length : 0;
  KVASIR_CHECKED(runtime.charge(1 + padding));
  const char align = spec.align != 0 ? spec.align : default_align;
  const std::size_t left = align == '<' ? 0 : (align == '^' ? padding / 2 : padding);
  std::string out;
  const auto fill = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out += spec.fill;
  };
  if (align == '=') out += sign;
  fill(left);
  if (align != '=') out += sign;
  out += body;
  fill(padding - left);
  return out;
}

std::string grouped(std::string digits, const FormatSpec& spec) {
  if (spec.grouping == 0) return digits;
  const std::size_t group =
      spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b' ? 4 : 3;
  const std::size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  for (std::size_t i = whole; i > group;) {
    i -= group;
    digits.insert(i, 1, spec.grouping);
  }
  return digits;
}

std::string sign_of(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string float_digits(double magnitude, const FormatSpec& spec) {
  const std::size_t precision = spec.precision.value_or(6);
  switch (spec.type) {
    case 'e':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#.{}e}" : "{:.{}e}"), magnitude, precision);
    case 'E':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#.{}E}" : "{:.{}E}"), magnitude, precision);
    case 'f':
    case 'F':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#.{}f}" : "{:.{}f}"), magnitude, precision);
    case 'g':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#.{}g}" : "{:.{}g}"), magnitude, precision);
    case 'G':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#.{}G}" : "{:.{}G}"), magnitude, precision);
    case '%':
      return fmt::format("{:.{}f}%", magnitude * 100, precision);
    default:
      break;
  }
  if (!spec.precision) return float_repr(magnitude);
  std::string digits = fmt::format("{:.{}g}", magnitude, *spec.precision);
  if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace

Result<std::size_t> take_number(std::string_view& text) {
  std::size_t size = 0;
  std::size_t number = 0;
  while (size < text.size() && text[size] >= '0' && text[size] <= '9') {
    if (size == 9) return limit_error("a format width or precision of more than 9 digits");
    number = number * 10 + static_cast<std::size_t>(text[size] - '0');
    ++size;
  }
  text.remove_prefix(size);
  return number;
}

Result<FormatSpec> parse_format_spec(std::string_view text) {
  FormatSpec spec;
  const std::string_view whole = text;
  const std::size_t fill_size = text.empty() ? 0 : code_point_at(text, 0).size_bytes;
  if (fill_size > 0 && is_alignment(text, fill_size)) {
    spec.fill = text.substr(0, fill_size);
    text.remove_prefix(fill_size);
  }
  if (is_alignment(text, 0)) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&](std::string_view wanted) -> char {
    if (text.empty() || wanted.find(text[0]) == std::string_view::npos) return 0;
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != 0;
  if (take("0") != 0 && spec.align == 0) {
    spec.fill.assign(1, '0');
    spec.align = '=';
  }
  KVASIR_TRY(spec.width, take_number(text));
  spec.grouping = take(",_");
  if (take(".") != 0) {
    KVASIR_TRY(spec.precision, take_number(text));
  }
  if (!text.empty()) spec.type = take("sdboxXeEfFgGcn%");
  if (!text.empty()) return template_error("unsupported format specification '{}'", whole);
  return spec;
}

Result<std::string> format_text(Runtime& runtime, std::string_view text, const FormatSpec& spec) {
  if (spec.precision) text = text.substr(0, byte_offset(text, *spec.precision));
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  return padded(runtime, "", text, spec, '<');
}

Result<std::string> format_integer(Runtime& runtime, std::int64_t value, const FormatSpec& spec) {
  const std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits;
  std::string prefix;
  switch (spec.type) {
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      prefix = "0b";
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      prefix = "0o";
      break;
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      prefix = "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      prefix = "0X";
      break;
    case 'c': {
      if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
        return template_error("no character has the number {}", value);
      }
      append_utf8(digits, static_cast<char32_t>(value));
      return padded(runtime, "", digits, spec, '<');
    }
    case 0:
    case 'd':
    case 'n':
      digits = fmt::format("{}", magnitude);
      break;
    case 's':
      return template_error("an integer has no format of type 's'");
    default:
      return format_float(runtime, static_cast<double>(value), spec);
  }
  const std::string sign = sign_of(value < 0, spec) + (spec.alternate ? prefix : "");
  return padded(runtime, sign, grouped(std::move(digits), spec), spec, '>');
}

Result<std::string> format_float(Runtime& runtime, double value, const FormatSpec& spec) {
  constexpr std::string_view kFloatTypes = "eEfFgG%n";
  if (spec.type != 0 && kFloatTypes.find(spec.type) == std::string_view::npos) {
    return template_error("a float has no format of type '{}'", spec.type);
  }
  KVASIR_CHECKED(runtime.charge(1 + spec.precision.value_or(0)));
  const std::string sign = sign_of(std::signbit(value) && !std::isnan(value), spec);
  return padded(runtime, sign, grouped(float_digits(std::fabs(value), spec), spec), spec, '>');
}

Result<std::string> format_value(Runtime& runtime, const Value& value, const FormatSpec& spec) {
  switch (value.kind()) {
    case Value::Kind::kBool:
      if (spec.type == 0 && spec.width == 0) return to_text(runtime, value);
      return format_integer(runtime, value.as_bool() ? 1 : 0, spec);
    case Value::Kind::kInt:
      return format_integer(runtime, value.as_int(), spec);
    case Value::Kind::kFloat:
      return format_float(runtime, value.as_float(), spec);
    case Value::Kind::kString:
      if (spec.type != 0 && spec.type != 's')
        return template_error("a string has no format of type '{}'", spec.type);
      return format_text(runtime, value.as_string(), spec);
    default:
      break;
  }
  if (spec.type != 0 || spec.width != 0 || spec.precision) {
    return template_error("a '{}' cannot be formatted with a specification", value.type_name());
  }
  return to_text(runtime, value);
}

}  // namespace kvasir::jinja
