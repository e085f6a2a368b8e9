#include "grammar/schema/decimal.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace kvasir::grammar {
namespace {

constexpr int kMaxExponent = 1000;

std::string_view take_digits(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

bool take(std::string_view& text, std::string_view wanted) {
  if (text.empty() || wanted.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int> take_exponent(std::string_view& text) {
  const bool is_negative = text.starts_with('-');
  take(text, "+-");
  const std::string_view digits = take_digits(text);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || value > kMaxExponent) return std::nullopt;
  return is_negative ? -value : value;
}

std::strong_ordering compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole().size() != b.whole().size()) return a.whole().size() <=> b.whole().size();
  if (const auto order = a.whole() <=> b.whole(); order != 0) return order;
  return a.fraction() <=> b.fraction();  // without zeros at the end, as texts
}

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal result;
  result.is_negative_ = take(text, "-");
  std::string digits(take_digits(text));
  if (digits.empty()) return std::nullopt;
  auto point = static_cast<std::ptrdiff_t>(digits.size());
  if (take(text, ".")) {
    const std::string_view fraction = take_digits(text);
    if (fraction.empty()) return std::nullopt;
    digits += fraction;
  }
  if (take(text, "eE")) {
    const std::optional<int> exponent = take_exponent(text);
    if (!exponent) return std::nullopt;
    point += *exponent;
  }
  if (!text.empty()) return std::nullopt;
  if (point < 0) digits.insert(0, static_cast<std::size_t>(-point), '0');
  point = std::max<std::ptrdiff_t>(point, 0);
  if (static_cast<std::size_t>(point) > digits.size()) digits.resize(static_cast<std::size_t>(point), '0');
  std::string whole = digits.substr(0, static_cast<std::size_t>(point));
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  if (!whole.empty()) result.whole_ = whole;
  result.fraction_ = digits.substr(static_cast<std::size_t>(point));
  while (result.fraction_.ends_with('0')) result.fraction_.pop_back();
  if (result.is_zero()) result.is_negative_ = false;
  return result;
}

Decimal Decimal::negated() const {
  Decimal result = *this;
  result.is_negative_ = !is_negative_ && !is_zero();
  return result;
}

std::string Decimal::text() const {
  return (is_negative_ ? "-" : "") + whole_ + (fraction_.empty() ? "" : "." + fraction_);
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (is_negative_ != other.is_negative_) return is_negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  return is_negative_ ? compare_magnitudes(other, *this) : compare_magnitudes(*this, other);
}

}  // namespace kvasir::grammar
