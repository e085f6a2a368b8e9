#include <algorithm>

#include "jinja/access.h"
#include "jinja/filters/filter_tables.h"
#include "jinja/number.h"
#include "jinja/operators.h"
#include "jinja/python_string.h"

namespace kvasir::jinja {
namespace {

// The arguments behind the first `count`, for the filter or test applied to each item.
Arguments rest_of(const Arguments& arguments, std::size_t count) {
  const auto skipped = static_cast<std::ptrdiff_t>(std::min(count, arguments.positional.size()));
  return {.positional = {arguments.positional.begin() + skipped, arguments.positional.end()},
          .keywords = arguments.keywords};
}

Result<const Builtin*> named(const Value& name, const Builtin* (*find)(std::string_view),
                             std::string_view what) {
  KVASIR_TRY(const std::string text, string_argument(name, what, ""));
  const Builtin* builtin = find(text);
  if (builtin == nullptr) return template_error("No {} named '{}'.", what, text);
  return builtin;
}

Result<Value> map_attribute(Runtime& runtime, const List& source, Arguments arguments) {
  const Value attribute = arguments.take_keyword("attribute");
  const Value fallback = arguments.take_keyword("default");
  if (!arguments.keywords.empty())
    return template_error("map has no parameter '{}'", arguments.keywords[0].first);
  std::vector<Value> items;
  for (const Value& item : source.items) {
    KVASIR_TRY(Value value, attribute_of(runtime, item, attribute));
    if (value.is_undefined() && !fallback.is_missing() && !fallback.is_none()) value = fallback;
    items.push_back(std::move(value));
  }
  return runtime.make_generator(std::move(items));
}

Result<Value> map(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!truthy(self)) return runtime.make_generator({});
  KVASIR_TRY(const auto source, iterate(runtime, self));
  if (arguments.positional.empty()) {
    if (arguments.keywords.empty()) return template_error("map needs a filter name or attribute=");
    return map_attribute(runtime, *source, arguments);
  }
  KVASIR_TRY(const Builtin* const filter, named(arguments.positional[0], find_filter, "filter"));
  const Arguments rest = rest_of(arguments, 1);
  std::vector<Value> items;
  for (const Value& item : source->items) {
    KVASIR_CHECKED(runtime.charge(rest.positional.size() + rest.keywords.size()));
    KVASIR_TRY(Value value, invoke(*filter, runtime, item, rest));
    items.push_back(std::move(value));
  }
  return runtime.make_generator(std::move(items));
}

// select, reject, selectattr and rejectattr: keeps the items whose test (or truth) is `kKeep`.
template <bool kByAttribute, bool kKeep>
Result<Value> choose(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!truthy(self)) return runtime.make_generator({});
  KVASIR_TRY(const auto source, iterate(runtime, self));
  constexpr std::size_t kTestIndex = kByAttribute ? 1 : 0;
  if (arguments.positional.size() < kTestIndex) return template_error("Missing parameter for attribute name");
  const Builtin* test = nullptr;
  if (arguments.positional.size() > kTestIndex) {
    KVASIR_TRY(test, named(arguments.positional[kTestIndex], find_test, "test"));
  }
  const Arguments rest = rest_of(arguments, kTestIndex + 1);
  std::vector<Value> kept;
  for (const Value& item : source->items) {
    KVASIR_CHECKED(runtime.charge(1 + rest.positional.size()));
    KVASIR_TRY(Value subject,
               attribute_of(runtime, item, kByAttribute ? arguments.positional[0] : Value::none()));
    if (test != nullptr) {
      KVASIR_TRY(subject, invoke(*test, runtime, subject, rest));
    }
    if (truthy(subject) == kKeep) kept.push_back(item);
  }
  return runtime.make_generator(std::move(kept));
}

constexpr Builtin kSelectFilters[] = {
    {"map", 0, {kAnyArguments}, map},
    {"reject", 0, {kAnyArguments}, choose<false, false>},
    {"rejectattr", 0, {kAnyArguments}, choose<true, false>},
    {"select", 0, {kAnyArguments}, choose<false, true>},
    {"selectattr", 0, {kAnyArguments}, choose<true, true>},
};

}  // namespace

std::span<const Builtin> select_filters() { return kSelectFilters; }

Result<Value> attribute_of(Runtime& runtime, const Value& item, const Value& attribute) {
  if (attribute.is_none()) return item;
  if (!attribute.is_string()) return get_item(runtime, item, attribute);
  KVASIR_CHECKED(runtime.charge_bytes(attribute.as_string().size()));
  Value value = item;
  std::string_view path = attribute.as_string();
  while (true) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, dot);
    const bool is_index =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    const auto index = is_index ? parse_int(part, 10) : std::nullopt;
    KVASIR_TRY(value,
               get_item(runtime, value, index ? Value::integer(*index) : Value::string(std::string(part))));
    if (dot == path.size()) return value;
    path.remove_prefix(dot + 1);
  }
}

Value ignoring_case(const Value& value) {
  return value.is_string() ? Value::string(to_lower(value.as_string())) : value;
}

}  // namespace kvasir::jinja
