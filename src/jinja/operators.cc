#include "jinja/operators.h"

#include <cmath>
#include <limits>

#include "base/checked_math.h"
#include "jinja/access.h"
#include "jinja/number.h"
#include "jinja/percent_format.h"
#include "jinja/python_string.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

std::string_view symbol(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return "+";
    case BinaryOperator::kSubtract:
      return "-";
    case BinaryOperator::kMultiply:
      return "*";
    case BinaryOperator::kDivide:
      return "/";
    case BinaryOperator::kFloorDivide:
      return "//";
    case BinaryOperator::kModulo:
      return "%";
    case BinaryOperator::kPower:
      return "**";
  }
  return "?";
}

std::unexpected<Error> unsupported(BinaryOperator op, const Value& left, const Value& right) {
  return template_error("unsupported operand types for {}: '{}' and '{}'", symbol(op), left.type_name(),
                        right.type_name());
}

bool is_tuple(const List& list) { return list.kind == ListKind::kTuple || list.kind == ListKind::kGroup; }

Result<Value> integer_or_overflow(std::optional<std::int64_t> value) {
  if (!value) return limit_error("an integer result does not fit 64 bits");
  return Value::integer(*value);
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

double float_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Result<Value> integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return template_error("0 cannot be raised to a negative power");
    return Value::number(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::optional<std::int64_t> result = 1;
  std::optional<std::int64_t> factor = base;
  while (exponent > 0 && result) {
    if ((exponent & 1) != 0) result = factor ? checked_mul(*result, *factor) : std::nullopt;
    exponent >>= 1;
    // 0, 1 and -1 stay in range however often they are squared.
    if (exponent > 0 && factor) factor = checked_mul(*factor, *factor);
  }
  return integer_or_overflow(result);
}

Result<Value> integer_arithmetic(BinaryOperator op, std::int64_t a, std::int64_t b) {
  const bool divides =
      op == BinaryOperator::kDivide || op == BinaryOperator::kFloorDivide || op == BinaryOperator::kModulo;
  if (divides && b == 0) return template_error("division by zero");
  switch (op) {
    case BinaryOperator::kAdd:
      return integer_or_overflow(checked_add(a, b));
    case BinaryOperator::kSubtract: {
      std::int64_t out = 0;
      if (__builtin_sub_overflow(a, b, &out)) return integer_or_overflow(std::nullopt);
      return Value::integer(out);
    }
    case BinaryOperator::kMultiply:
      return integer_or_overflow(checked_mul(a, b));
    case BinaryOperator::kDivide:
      return Value::number(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOperator::kFloorDivide:
      if (b == -1) return integer_arithmetic(BinaryOperator::kSubtract, 0, a);
      return Value::integer(floor_divide(a, b));
    case BinaryOperator::kModulo:
      if (b == -1) return Value::integer(0);
      return Value::integer(a - floor_divide(a, b) * b);
    case BinaryOperator::kPower:
      return integer_power(a, b);
  }
  return Value::none();
}

Result<Value> float_arithmetic(BinaryOperator op, double a, double b) {
  const bool divides =
      op == BinaryOperator::kDivide || op == BinaryOperator::kFloorDivide || op == BinaryOperator::kModulo;
  if (divides && b == 0) return template_error("float division by zero");
  switch (op) {
    case BinaryOperator::kAdd:
      return Value::number(a + b);
    case BinaryOperator::kSubtract:
      return Value::number(a - b);
    case BinaryOperator::kMultiply:
      return Value::number(a * b);
    case BinaryOperator::kDivide:
      return Value::number(a / b);
    case BinaryOperator::kFloorDivide:
      return Value::number(std::floor((a - float_modulo(a, b)) / b + 0.5));
    case BinaryOperator::kModulo:
      return Value::number(float_modulo(a, b));
    case BinaryOperator::kPower: {
      if (a == 0 && b < 0) return template_error("0.0 cannot be raised to a negative power");
      const double power = std::pow(a, b);
      if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
        return limit_error("a power does not fit a float");
      if (std::isnan(power) && !std::isnan(a) && !std::isnan(b))
        return template_error("a power is not a real number");
      return Value::number(power);
    }
  }
  return Value::none();
}

Result<Value> repeated(Runtime& runtime, const Value& sequence, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (sequence.is_string()) {
    const std::string& unit = sequence.as_string();
    const auto size = checked_mul(unit.size(), times);
    KVASIR_CHECKED(runtime.charge_bytes(size.value_or(std::numeric_limits<std::size_t>::max() - 64)));
    const auto num_spans = checked_mul(sequence.text().foreign.size(), times);
    KVASIR_CHECKED(runtime.charge(num_spans.value_or(std::numeric_limits<std::size_t>::max())));
    TracedText out;
    for (std::size_t i = 0; i < times && !unit.empty(); ++i) out.append(sequence.text());
    return std::move(out).to_value(sequence.text().is_markup);
  }
  const List& list = sequence.as_list();
  const auto size = checked_mul(list.items.size(), times);
  KVASIR_CHECKED(runtime.charge(size.value_or(std::numeric_limits<std::size_t>::max())));
  std::vector<Value> items;
  items.reserve(*size);
  for (std::size_t i = 0; i < times && !list.items.empty(); ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return runtime.make_list(std::move(items), is_tuple(list) ? ListKind::kTuple : ListKind::kList);
}

bool repeatable(const Value& value) {
  return value.is_string() || (value.is_list() && value.as_list().kind <= ListKind::kGroup);
}

Result<Value> add_strings(Runtime& runtime, const Text& left, const Text& right) {
  KVASIR_CHECKED(runtime.charge_bytes(left.bytes.size() + right.bytes.size()));
  KVASIR_CHECKED(runtime.charge((left.foreign.size() + right.foreign.size()) / 4));
  const bool is_markup = left.is_markup || right.is_markup;
  TracedText out;
  for (const Text* text : {&left, &right}) {
    if (text->is_markup == is_markup) {
      out.append(*text);
    } else if (text->foreign.empty()) {
      out.append(escape_html(text->bytes));
    } else {
      out.append_foreign(escape_html(text->bytes));
    }
  }
  return std::move(out).to_value(is_markup);
}

Result<Value> add_lists(Runtime& runtime, const Value& left, const Value& right) {
  const List& a = left.as_list();
  const List& b = right.as_list();
  if (a.kind > ListKind::kGroup || b.kind > ListKind::kGroup || is_tuple(a) != is_tuple(b)) {
    return unsupported(BinaryOperator::kAdd, left, right);
  }
  KVASIR_CHECKED(runtime.charge(a.items.size() + b.items.size()));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return runtime.make_list(std::move(items), is_tuple(a) ? ListKind::kTuple : ListKind::kList);
}

}  // namespace

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return false;
    case Value::Kind::kBool:
      return value.as_bool();
    case Value::Kind::kInt:
      return value.as_int() != 0;
    case Value::Kind::kBigInt:
      return true;
    case Value::Kind::kFloat:
      return value.as_float() != 0;
    default:
      return length_of(value).value_or(1) != 0;
  }
}

Result<Value> apply_binary(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right) {
  if (op == BinaryOperator::kModulo && left.is_string()) return percent_format(runtime, left, right);
  for (const Value* operand : {&left, &right}) {
    if (operand->is_undefined()) return template_error("{}", operand->undefined_reason());
    if (operand->kind() == Value::Kind::kBigInt) {
      return limit_error("arithmetic on the integer {}, which does not fit 64 bits", operand->digits());
    }
  }
  if (const auto a = left.integral(), b = right.integral(); a && b) return integer_arithmetic(op, *a, *b);
  if (const auto a = left.numeric(), b = right.numeric(); a && b) return float_arithmetic(op, *a, *b);
  if (op == BinaryOperator::kAdd) {
    if (left.is_string() && right.is_string()) return add_strings(runtime, left.text(), right.text());
    if (left.is_list() && right.is_list()) return add_lists(runtime, left, right);
  }
  if (op == BinaryOperator::kMultiply) {
    if (repeatable(left) && right.integral()) return repeated(runtime, left, *right.integral());
    if (repeatable(right) && left.integral()) return repeated(runtime, right, *left.integral());
  }
  return unsupported(op, left, right);
}

Result<Value> negate(const Value& operand) {
  if (operand.is_undefined()) return template_error("{}", operand.undefined_reason());
  if (const auto whole = operand.integral()) return integer_arithmetic(BinaryOperator::kSubtract, 0, *whole);
  if (const auto number = operand.numeric()) return Value::number(-*number);
  return template_error("unsupported operand type for unary -: '{}'", operand.type_name());
}

Result<Value> posit(const Value& operand) {
  if (operand.is_undefined()) return template_error("{}", operand.undefined_reason());
  if (const auto whole = operand.integral()) return Value::integer(*whole);
  if (operand.numeric()) return operand;
  return template_error("unsupported operand type for unary +: '{}'", operand.type_name());
}

}  // namespace kvasir::jinja
