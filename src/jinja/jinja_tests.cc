// The tests that may stand behind `is`.
#include "jinja/builtin.h"
#include "jinja/comparison.h"
#include "jinja/operators.h"
#include "jinja/text_form.h"

namespace kvasir::jinja {
namespace {

using Kind = Value::Kind;

template <Kind kKind>
Result<Value> is_kind(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.kind() == kKind);
}

template <bool kWanted>
Result<Value> is_boolean_value(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.kind() == Kind::kBool && self.as_bool() == kWanted);
}

template <CompareOperator kOperator>
Result<Value> compares(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const bool result, apply_compare(runtime, kOperator, self, arguments.positional[0]));
  return Value::boolean(result);
}

Result<Value> is_defined(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(!self.is_undefined());
}

Result<Value> is_integer(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.kind() == Kind::kInt || self.kind() == Kind::kBigInt);
}

// A boolean counts as a number, as it does in Python.
Result<Value> is_number(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.numeric().has_value() || self.kind() == Kind::kBigInt);
}

// Python asks for a length and item access; undefined has both.
Result<Value> is_sequence(Runtime&, const Value& self, const Arguments&) {
  const bool indexable_list = self.is_list() && self.as_list().kind <= ListKind::kRange;
  return Value::boolean(self.is_string() || self.is_dict() || self.is_undefined() || indexable_list);
}

Result<Value> is_iterable(Runtime&, const Value& self, const Arguments&) {
  const bool iterates = self.is_object() && dynamic_cast<const Iterator*>(&self.as_object()) != nullptr;
  return Value::boolean(self.is_string() || self.is_dict() || self.is_undefined() || self.is_list() ||
                        iterates);
}

Result<Value> is_callable(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.is_undefined() || (self.is_object() && self.as_object().callable()));
}

Result<Value> is_escaped(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.is_string() && self.text().is_markup);
}

Result<Value> modulo(Runtime& runtime, const Value& self, const Value& divisor, std::int64_t remainder) {
  KVASIR_TRY(const Value rest, apply_binary(runtime, BinaryOperator::kModulo, self, divisor));
  KVASIR_TRY(const bool same, equal(runtime, rest, Value::integer(remainder)));
  return Value::boolean(same);
}

template <std::int64_t kRemainder>
Result<Value> has_parity(Runtime& runtime, const Value& self, const Arguments&) {
  return modulo(runtime, self, Value::integer(2), kRemainder);
}

Result<Value> divisibleby(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return modulo(runtime, self, arguments.positional[0], 0);
}

enum class Case { kLower, kUpper };

template <Case kCase>
Result<Value> has_case(Runtime& runtime, const Value& self, const Arguments&) {
  KVASIR_TRY(std::string text, to_text(runtime, self));
  const Value subject = Value::string(std::move(text));
  return invoke(*find_method(subject, kCase == Case::kLower ? "islower" : "isupper"), runtime, subject, {});
}

Result<Value> sameas(Runtime&, const Value& self, const Arguments& arguments) {
  return Value::boolean(self.same_as(arguments.positional[0]));
}

template <const Builtin* (*kFind)(std::string_view)>
Result<Value> is_known(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.is_string() && kFind(self.as_string()) != nullptr);
}

constexpr Builtin kTests[] = {
    {"!=", 1, {"other"}, compares<CompareOperator::kNotEqual>},
    {"<", 1, {"other"}, compares<CompareOperator::kLess>},
    {"<=", 1, {"other"}, compares<CompareOperator::kLessEqual>},
    {"==", 1, {"other"}, compares<CompareOperator::kEqual>},
    {">", 1, {"other"}, compares<CompareOperator::kGreater>},
    {">=", 1, {"other"}, compares<CompareOperator::kGreaterEqual>},
    {"boolean", 0, {}, is_kind<Kind::kBool>},
    {"callable", 0, {}, is_callable},
    {"defined", 0, {}, is_defined},
    {"divisibleby", 1, {"num"}, divisibleby},
    {"eq", 1, {"other"}, compares<CompareOperator::kEqual>},
    {"equalto", 1, {"other"}, compares<CompareOperator::kEqual>},
    {"escaped", 0, {}, is_escaped},
    {"even", 0, {}, has_parity<0>},
    {"false", 0, {}, is_boolean_value<false>},
    {"filter", 0, {}, is_known<find_filter>},
    {"float", 0, {}, is_kind<Kind::kFloat>},
    {"ge", 1, {"other"}, compares<CompareOperator::kGreaterEqual>},
    {"greaterthan", 1, {"other"}, compares<CompareOperator::kGreater>},
    {"gt", 1, {"other"}, compares<CompareOperator::kGreater>},
    {"in", 1, {"seq"}, compares<CompareOperator::kIn>},
    {"integer", 0, {}, is_integer},
    {"iterable", 0, {}, is_iterable},
    {"le", 1, {"other"}, compares<CompareOperator::kLessEqual>},
    {"lessthan", 1, {"other"}, compares<CompareOperator::kLess>},
    {"lower", 0, {}, has_case<Case::kLower>},
    {"lt", 1, {"other"}, compares<CompareOperator::kLess>},
    {"mapping", 0, {}, is_kind<Kind::kDict>},
    {"ne", 1, {"other"}, compares<CompareOperator::kNotEqual>},
    {"none", 0, {}, is_kind<Kind::kNone>},
    {"number", 0, {}, is_number},
    {"odd", 0, {}, has_parity<1>},
    {"sameas", 1, {"other"}, sameas},
    {"sequence", 0, {}, is_sequence},
    {"string", 0, {}, is_kind<Kind::kString>},
    {"test", 0, {}, is_known<find_test>},
    {"true", 0, {}, is_boolean_value<true>},
    {"undefined", 0, {}, is_kind<Kind::kUndefined>},
    {"upper", 0, {}, has_case<Case::kUpper>},
};

}  // namespace

const Builtin* find_test(std::string_view name) { return find_builtin(kTests, name); }

}  // namespace kvasir::jinja
