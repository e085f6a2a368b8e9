// Python's comparisons, membership and sorting of template values.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "jinja/runtime.h"

namespace kvasir::jinja {

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

Result<bool> apply_compare(Runtime& runtime, CompareOperator op, const Value& left, const Value& right);

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right);
// Errors (kUsage): values Python does not order, e.g. a string and a number.
Result<std::partial_ordering> order(Runtime& runtime, const Value& left, const Value& right);
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);

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

}  // namespace kvasir::jinja
