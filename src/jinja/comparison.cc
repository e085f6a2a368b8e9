#include "jinja/comparison.h"

#include <algorithm>

#include "jinja/access.h"
#include "jinja/number.h"
#include "jinja/python_string.h"

namespace kvasir::jinja {
namespace {

// Lists equal lists and tuples equal tuples, but never each other; views compare like their own kind.
bool comparable_kinds(const List& a, const List& b) {
  const auto family = [](ListKind kind) { return kind == ListKind::kGroup ? ListKind::kTuple : kind; };
  return family(a.kind) == family(b.kind);
}

Result<bool> lists_equal(Runtime& runtime, const List& a, const List& b) {
  if (&a == &b) return true;
  if (!comparable_kinds(a, b) || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    KVASIR_TRY(const bool same, equal(runtime, a.items[i], b.items[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> dicts_equal(Runtime& runtime, const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key);
    if (other == nullptr) return false;
    KVASIR_TRY(const bool same, equal(runtime, value, *other));
    if (!same) return false;
  }
  return true;
}

Result<std::partial_ordering> order_lists(Runtime& runtime, const List& a, const List& b) {
  const std::size_t shared = std::min(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < shared; ++i) {
    KVASIR_TRY(const bool same, equal(runtime, a.items[i], b.items[i]));
    if (!same) return order(runtime, a.items[i], b.items[i]);
  }
  return a.items.size() <=> b.items.size();
}

}  // namespace

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right) {
  KVASIR_CHECKED(runtime.charge(1));
  if (left.numeric() && right.numeric()) return compare_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kBigInt:
      return left.digits() == right.digits();
    case Value::Kind::kString:
      KVASIR_CHECKED(runtime.charge(std::min(left.as_string().size(), right.as_string().size()) / 64));
      return left.as_string() == right.as_string();
    case Value::Kind::kList:
      return lists_equal(runtime, left.as_list(), right.as_list());
    case Value::Kind::kDict:
      return dicts_equal(runtime, left.as_dict(), right.as_dict());
    case Value::Kind::kObject:
      return &left.as_object() == &right.as_object();
    default:
      return false;  // the number kinds are compared above
  }
}

Result<std::partial_ordering> order(Runtime& runtime, const Value& left, const Value& right) {
  KVASIR_CHECKED(runtime.charge(1));
  if (left.numeric() && right.numeric()) return compare_numbers(left, right);
  if (left.is_string() && right.is_string()) {
    KVASIR_CHECKED(runtime.charge(std::min(left.as_string().size(), right.as_string().size()) / 64));
    // UTF-8 sorts by code point, as Python's strings do.
    return left.as_string() <=> right.as_string();
  }
  if (left.is_list() && right.is_list() && left.as_list().kind <= ListKind::kGroup &&
      comparable_kinds(left.as_list(), right.as_list())) {
    return order_lists(runtime, left.as_list(), right.as_list());
  }
  for (const Value* operand : {&left, &right}) {
    if (operand->is_undefined()) return template_error("{}", operand->undefined_reason());
  }
  return template_error("'{}' and '{}' have no order", left.type_name(), right.type_name());
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string())
      return template_error("only a string can be in a string, not '{}'", item.type_name());
    KVASIR_CHECKED(runtime.charge_bytes(container.as_string().size() + item.as_string().size()));
    return find_bytes(container.as_string(), item.as_string()).has_value();
  }
  if (container.is_dict()) {
    if (!item.hashable()) return template_error("unhashable type: '{}'", item.type_name());
    return container.as_dict().find(item) != nullptr;
  }
  if (container.is_object()) {
    if (auto* iterator = dynamic_cast<Iterator*>(&container.as_object())) {
      while (const auto next = iterator->next()) {
        KVASIR_TRY(const bool same, equal(runtime, *next, item));
        if (same) return true;
      }
      return false;
    }
  }
  KVASIR_TRY(const auto items, iterate(runtime, container));
  for (const Value& candidate : items->items) {
    KVASIR_TRY(const bool same, equal(runtime, candidate, item));
    if (same) return true;
  }
  return false;
}

Result<bool> apply_compare(Runtime& runtime, CompareOperator op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOperator::kEqual:
      return equal(runtime, left, right);
    case CompareOperator::kNotEqual: {
      KVASIR_TRY(const bool same, equal(runtime, left, right));
      return !same;
    }
    case CompareOperator::kIn:
      return contains(runtime, right, left);
    case CompareOperator::kNotIn: {
      KVASIR_TRY(const bool inside, contains(runtime, right, left));
      return !inside;
    }
    default:
      break;
  }
  KVASIR_TRY(const auto result, order(runtime, left, right));
  switch (op) {
    case CompareOperator::kLess:
      return result < 0;
    case CompareOperator::kLessEqual:
      return result <= 0;
    case CompareOperator::kGreater:
      return result > 0;
    default:
      return result >= 0;
  }
}

}  // namespace kvasir::jinja
