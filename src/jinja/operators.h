// Python's arithmetic on template values.
#pragma once

#include <cstdint>

#include "jinja/runtime.h"

namespace kvasir::jinja {

enum class BinaryOperator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower
};
bool truthy(const Value& value);

Result<Value> apply_binary(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right);
Result<Value> negate(const Value& operand);
Result<Value> posit(const Value& operand);
}  // namespace kvasir::jinja
