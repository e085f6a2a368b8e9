// Python's operators on template values.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "text/template/runtime.h"

namespace kvasir::text::jinja {

enum class BinaryOperator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower
};
enum class CompareOperator : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};

bool truthy(const Value& value);

Result<Value> apply_binary(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right);
Result<Value> negate(const Value& operand);
Result<Value> posit(const Value& operand);
Result<bool> apply_compare(Runtime& runtime, CompareOperator op, const Value& left, const Value& right);

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right);
// Errors (kUsage): values Python does not order, e.g. a string and a number.
Result<std::partial_ordering> order(Runtime& runtime, const Value& left, const Value& right);
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);

// What a for loop sees: items, keys of a dict, characters of a string. Reads an Iterator to its end.
Result<std::shared_ptr<const List>> iterate(Runtime& runtime, const Value& value);
// len(value); empty when the value has no length.
std::optional<std::size_t> length_of(const Value& value);

// `object.name`, `object[key]` and `object[start:stop:step]` under the immutable sandbox's rules. What is
// absent is undefined. Slice bounds that the template left out are none.
Result<Value> get_attribute(Runtime& runtime, const Value& object, const std::string& name);
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);
Result<Value> get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                        const Value& step);
// A method or object attribute, without falling back to dict keys; empty when there is none.
std::optional<Value> find_attribute(const Value& object, const std::string& name);

// Sorts stably by key(item), charging each comparison; the first one that fails is the error.
template <class Item, class Key>
Status sort_values(Runtime& runtime, std::vector<Item>& items, Key key, bool reverse) {
  KVASIR_CHECKED(runtime.charge(items.size()));
  Status status;
  const auto less = [&](const Item& a, const Item& b) {
    if (!status) return false;
    const auto result = reverse ? order(runtime, key(b), key(a)) : order(runtime, key(a), key(b));
    if (!result) status = std::unexpected(result.error());
    return result && *result < 0;
  };
  std::stable_sort(items.begin(), items.end(), less);
  return status;
}

}  // namespace kvasir::text::jinja
