#include <cmath>

#include "jinja/comparison.h"
#include "jinja/methods/method_tables.h"

namespace kvasir::jinja {
namespace {

Result<Value> list_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto& items = self.as_list().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    KVASIR_TRY(const bool same, equal(runtime, items[i], arguments.positional[0]));
    if (same) return Value::integer(static_cast<std::int64_t>(i));
  }
  return template_error("index: the value is not in the list");
}

Result<Value> list_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  std::int64_t count = 0;
  for (const Value& item : self.as_list().items) {
    KVASIR_TRY(const bool same, equal(runtime, item, arguments.positional[0]));
    count += same ? 1 : 0;
  }
  return Value::integer(count);
}

Result<Value> copy(Runtime&, const Value& self, const Arguments&) { return self; }

Result<Value> dict_items(Runtime& runtime, const Value& self, const Arguments&) {
  std::vector<Value> items;
  for (const auto& [key, value] : self.as_dict().entries()) {
    KVASIR_TRY(Value pair, runtime.make_list({key, value}, ListKind::kTuple));
    items.push_back(std::move(pair));
  }
  return runtime.make_list(std::move(items), ListKind::kDictItems);
}

template <bool kKeys>
Result<Value> dict_side(Runtime& runtime, const Value& self, const Arguments&) {
  std::vector<Value> items;
  for (const auto& [key, value] : self.as_dict().entries()) items.push_back(kKeys ? key : value);
  return runtime.make_list(std::move(items), kKeys ? ListKind::kDictKeys : ListKind::kDictValues);
}

Result<Value> dict_get(Runtime&, const Value& self, const Arguments& arguments) {
  const Value& key = arguments.positional[0];
  if (!key.hashable()) return template_error("unhashable type: '{}'", key.type_name());
  if (const Value* value = self.as_dict().find(key)) return *value;
  return arguments.positional[1].is_missing() ? Value::none() : arguments.positional[1];
}

Result<Value> is_integer(Runtime&, const Value& self, const Arguments&) {
  const double number = self.as_float();
  return Value::boolean(std::isfinite(number) && std::floor(number) == number);
}

constexpr Builtin kListMethods[] = {
    {"copy", 0, {}, copy},
    {"count", 1, {"value"}, list_count},
    {"index", 1, {"value"}, list_index},
};
constexpr Builtin kDictMethods[] = {
    {"copy", 0, {}, copy},
    {"get", 1, {"key", "default"}, dict_get},
    {"items", 0, {}, dict_items},
    {"keys", 0, {}, dict_side<true>},
    {"values", 0, {}, dict_side<false>},
};
constexpr Builtin kFloatMethods[] = {{"is_integer", 0, {}, is_integer}};

}  // namespace

std::span<const Builtin> list_methods(ListKind kind) {
  switch (kind) {
    case ListKind::kList:
      return kListMethods;
    case ListKind::kTuple:
    case ListKind::kGroup:
    case ListKind::kRange:
      return std::span(kListMethods).subspan(1);  // all but copy
    default:
      return {};
  }
}

std::span<const Builtin> dict_methods() { return kDictMethods; }

std::span<const Builtin> number_methods(Value::Kind kind) {
  if (kind == Value::Kind::kFloat) return kFloatMethods;
  return {};
}

}  // namespace kvasir::jinja
