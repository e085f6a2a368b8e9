#include "jinja/number.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "jinja/python_string.h"

namespace kvasir::jinja {
namespace {

// Exact: a double cannot hold every 64-bit integer, so the integer part decides first.
std::partial_ordering compare_int_float(std::int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 9223372036854775808.0) return std::partial_ordering::less;
  if (b < -9223372036854775808.0) return std::partial_ordering::greater;
  const double floor_b = std::floor(b);
  const auto whole = static_cast<std::int64_t>(floor_b);
  if (a != whole) return a < whole ? std::partial_ordering::less : std::partial_ordering::greater;
  return floor_b < b ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

// The digits without underscores; empty when an underscore does not stand between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    const auto alnum = [](char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); };
    if (i == 0 || i + 1 == text.size() || !alnum(text[i - 1]) || !alnum(text[i + 1])) return std::nullopt;
  }
  return out;
}

int prefix_base(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  switch (digits[1] | 32) {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 10;
  }
}

}  // namespace

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  const auto int_a = a.integral();
  const auto int_b = b.integral();
  if (int_a && int_b) return *int_a <=> *int_b;
  if (int_a) return compare_int_float(*int_a, b.as_float());
  if (int_b) return 0 <=> compare_int_float(*int_b, a.as_float());
  return a.as_float() <=> b.as_float();
}

int key_order(const Value& a, const Value& b) {
  const auto order = compare_numbers(a, b);
  if (order != std::partial_ordering::unordered) return order < 0 ? -1 : (order > 0 ? 1 : 0);
  const auto is_nan = [](const Value& v) {
    return v.kind() == Value::Kind::kFloat && std::isnan(v.as_float());
  };
  return static_cast<int>(is_nan(b)) - static_cast<int>(is_nan(a));
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  std::string_view scientific(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  std::string out;
  if (scientific.front() == '-') {
    out.push_back('-');
    scientific.remove_prefix(1);
  }
  const std::size_t e = scientific.find('e');
  std::string digits(1, scientific[0]);
  if (e > 2) digits.append(scientific.substr(2, e - 2));
  const char* exponent_begin = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  int exponent = 0;
  std::from_chars(exponent_begin, scientific.data() + scientific.size(), exponent);
  const int num_digits = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out.push_back(digits[0]);
    if (num_digits > 1) out.append(".").append(digits, 1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (exponent + 1 >= num_digits) {
    return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - num_digits), '0') + ".0";
  }
  const auto point = static_cast<std::size_t>(exponent + 1);
  return out + digits.substr(0, point) + "." + digits.substr(point);
}

std::optional<std::int64_t> parse_int(std::string_view text, int base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  text = strip_whitespace(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const int prefix = prefix_base(text);
  if (prefix != 10 && (base == 0 || base == prefix)) {
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    base = prefix;
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  if (base == 0 && digits->size() > 1 && digits->front() == '0' &&
      digits->find_first_not_of('0') != std::string::npos) {
    return std::nullopt;
  }
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  std::int64_t out = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto [ptr, error] = std::from_chars(signed_digits.data(), end, out, base == 0 ? 10 : base);
  if (error != std::errc{} || ptr != end) return std::nullopt;
  return out;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip_whitespace(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  double out = 0;
  const char* end = digits->data() + digits->size();
  const auto [ptr, error] = std::from_chars(digits->data(), end, out);
  if (ptr != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Underflow reads as 0, overflow as infinity; the exponent's sign tells them apart.
    const std::size_t e = digits->find_first_of("eE");
    const bool tiny = e != std::string::npos ? (*digits)[e + 1] == '-' : digits->front() == '0';
    out = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  // from_chars also reads "nan(...)", which Python does not.
  if (std::isnan(out) && digits->size() != 3) return std::nullopt;
  return negative ? -out : out;
}

double round_decimal(double value, int digits) {
  if (!std::isfinite(value) || digits > 308) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    // Correctly rounded decimal text, read back: exactly what Python does.
    const std::string text = fmt::format("{:.{}f}", value, digits);
    double out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }
  const double scale = std::pow(10.0, -digits);
  return std::nearbyint(value / scale) * scale;
}

}  // namespace kvasir::jinja
