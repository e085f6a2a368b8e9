// Numbers of JSON, exact whatever their length.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::grammar {

// A value: sign, digits before and behind the point. Invariant: no zero at the outer ends, but one digit before the
// point at least; zero is not negative.
class Decimal {
 public:
  Decimal() = default;

  // Empty: no JSON number, or an exponent beyond +-1000.
  static std::optional<Decimal> parse(std::string_view text);
  static Decimal of(std::int64_t value) { return *parse(std::to_string(value)); }

  bool is_negative() const { return is_negative_; }
  bool is_zero() const { return whole_ == "0" && fraction_.empty(); }
  bool is_integer() const { return fraction_.empty(); }
  const std::string& whole() const { return whole_; }
  const std::string& fraction() const { return fraction_; }
  Decimal negated() const;
  // Its shortest form without an exponent.
  std::string text() const;

  friend bool operator==(const Decimal&, const Decimal&) = default;
  std::strong_ordering operator<=>(const Decimal& other) const;

 private:
  bool is_negative_ = false;
  std::string whole_ = "0";
  std::string fraction_;
};

}  // namespace kvasir::grammar
