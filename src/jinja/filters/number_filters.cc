#include <cmath>

#include "jinja/access.h"
#include "jinja/filters/filter_tables.h"
#include "jinja/number.h"
#include "jinja/operators.h"

namespace kvasir::jinja {
namespace {

Result<Value> absolute(Runtime&, const Value& self, const Arguments&) {
  if (self.is_undefined()) return template_error("{}", self.undefined_reason());
  if (const auto whole = self.integral())
    return *whole < 0 ? negate(self) : Result<Value>(Value::integer(*whole));
  if (const auto number = self.numeric()) return Value::number(std::fabs(*number));
  return template_error("abs needs a number, not '{}'", self.type_name());
}

// int(float(...)): empty for NaN and infinity; Python's int would grow beyond 64 bits, ours does not.
std::optional<Value> truncated(double number) {
  if (!(std::fabs(number) < 9223372036854775808.0)) return std::nullopt;
  return Value::integer(static_cast<std::int64_t>(number));
}

Result<Value> to_int(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value fallback = arguments.positional[0].is_missing() ? Value::integer(0) : arguments.positional[0];
  if (self.is_undefined()) return template_error("{}", self.undefined_reason());
  if (const auto whole = self.integral()) return Value::integer(*whole);
  if (self.kind() == Value::Kind::kBigInt) return self;
  if (const auto number = self.numeric()) return truncated(*number).value_or(fallback);
  if (!self.is_string()) return fallback;
  KVASIR_TRY(const std::int64_t base, int_argument(arguments.positional[1], "base", 10));
  KVASIR_CHECKED(runtime.charge_bytes(self.as_string().size()));
  if (const auto whole = parse_int(self.as_string(), static_cast<int>(base))) return Value::integer(*whole);
  if (const auto number = parse_float(self.as_string())) return truncated(*number).value_or(fallback);
  return fallback;
}

Result<Value> to_float(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value fallback = arguments.positional[0].is_missing() ? Value::number(0.0) : arguments.positional[0];
  if (self.is_undefined()) return template_error("{}", self.undefined_reason());
  if (const auto number = self.numeric()) return Value::number(*number);
  if (!self.is_string()) return fallback;
  KVASIR_CHECKED(runtime.charge_bytes(self.as_string().size()));
  if (const auto number = parse_float(self.as_string())) return Value::number(*number);
  return fallback;
}

Result<Value> round(Runtime&, const Value& self, const Arguments& arguments) {
  if (self.is_undefined()) return template_error("{}", self.undefined_reason());
  const auto number = self.numeric();
  if (!number) return template_error("round needs a number, not '{}'", self.type_name());
  KVASIR_TRY(const std::int64_t precision, int_argument(arguments.positional[0], "precision", 0));
  KVASIR_TRY(const std::string method, string_argument(arguments.positional[1], "method", "common"));
  if (precision < -400 || precision > 400) return limit_error("round: a precision of {}", precision);
  const int digits = static_cast<int>(precision);
  if (method == "common") {
    if (self.integral() && digits >= 0) return Value::integer(*self.integral());
    const double rounded = round_decimal(*number, digits);
    if (!self.integral()) return Value::number(rounded);
    return Value::integer(static_cast<std::int64_t>(rounded));
  }
  if (method != "ceil" && method != "floor")
    return template_error("round: method must be common, ceil or floor");
  const double scale = std::pow(10.0, digits);
  const double scaled = *number * scale;
  return Value::number((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Result<Value> sum(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const auto items, iterate(runtime, self));
  const Value& attribute = arguments.positional[0];
  Value total = arguments.positional[1].is_missing() ? Value::integer(0) : arguments.positional[1];
  if (total.is_string()) return template_error("sum cannot add strings, use join");
  for (const Value& item : items->items) {
    KVASIR_TRY(const Value part,
               attribute_of(runtime, item, attribute.is_missing() ? Value::none() : attribute));
    KVASIR_TRY(total, apply_binary(runtime, BinaryOperator::kAdd, total, part));
  }
  return total;
}

constexpr Builtin kNumberFilters[] = {
    {"abs", 0, {}, absolute},
    {"float", 0, {"default"}, to_float},
    {"int", 0, {"default", "base"}, to_int},
    {"round", 0, {"precision", "method"}, round},
    {"sum", 0, {"attribute", "start"}, sum},
};

}  // namespace

std::span<const Builtin> number_filters() { return kNumberFilters; }

}  // namespace kvasir::jinja
