#include "jinja/builtin.h"

#include <algorithm>

#include "jinja/filters/filter_tables.h"
#include "jinja/methods/method_tables.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

std::size_t num_parameters(const Builtin& builtin) {
  return static_cast<std::size_t>(std::find(builtin.parameters.begin(), builtin.parameters.end(), "") -
                                  builtin.parameters.begin());
}

Status bind(const Builtin& builtin, Arguments& arguments) {
  const std::size_t count = num_parameters(builtin);
  if (arguments.positional.size() > count) {
    return template_error("{} takes at most {} arguments, got {}", builtin.name, count,
                          arguments.positional.size());
  }
  const std::size_t num_positional = arguments.positional.size();
  arguments.positional.resize(count, Value::missing());
  for (auto& [name, value] : arguments.keywords) {
    const auto it = std::find(builtin.parameters.begin(), builtin.parameters.begin() + count, name);
    const auto index = static_cast<std::size_t>(it - builtin.parameters.begin());
    if (index == count) return template_error("{} has no parameter '{}'", builtin.name, name);
    if (index < num_positional) return template_error("{} got parameter '{}' twice", builtin.name, name);
    arguments.positional[index] = std::move(value);
  }
  arguments.keywords.clear();
  for (std::size_t i = 0; i < builtin.num_required; ++i) {
    if (arguments.positional[i].is_missing()) {
      return template_error("{} needs its parameter '{}'", builtin.name, builtin.parameters[i]);
    }
  }
  return {};
}

// Text without a known origin is as foreign as what it was made from.
Value with_origin(Value result, const Value& self, const Arguments& arguments) {
  if (!result.is_string() || result.text().is_traced) return result;
  const bool is_foreign = has_foreign(self) || std::ranges::any_of(arguments.positional, has_foreign) ||
                          std::ranges::any_of(arguments.keywords, [](const auto& keyword) {
                            return has_foreign(keyword.second);
                          });
  TracedText text;
  if (is_foreign) {
    text.append_foreign(result.as_string());
  } else {
    text.append(result.as_string());
  }
  return std::move(text).to_value(result.text().is_markup);
}

}  // namespace

Result<Value> invoke(const Builtin& builtin, Runtime& runtime, const Value& self, Arguments arguments) {
  KVASIR_CHECKED(runtime.charge(1));
  if (builtin.parameters[0] != kAnyArguments) KVASIR_CHECKED(bind(builtin, arguments));
  KVASIR_TRY(Value result, builtin.function(runtime, self, arguments));
  return with_origin(std::move(result), self, arguments);
}

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name) {
  const auto it = std::find_if(table.begin(), table.end(), [&](const Builtin& b) { return b.name == name; });
  return it == table.end() ? nullptr : &*it;
}

const Builtin* find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), number_filters(), sequence_filters(), select_filters(), order_filters()}) {
    if (const Builtin* filter = find_builtin(table, name)) return filter;
  }
  return nullptr;
}

const Builtin* find_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Value::Kind::kString:
      if (const Builtin* method = find_builtin(string_methods(), name)) return method;
      return find_builtin(string_predicates(), name);
    case Value::Kind::kList:
      return find_builtin(list_methods(self.as_list().kind), name);
    case Value::Kind::kDict:
      return find_builtin(dict_methods(), name);
    case Value::Kind::kBool:
    case Value::Kind::kInt:
    case Value::Kind::kFloat:
      return find_builtin(number_methods(self.kind()), name);
    default:
      return nullptr;
  }
}

bool is_mutating_method(const Value& self, std::string_view name) {
  constexpr std::string_view kListMutators[] = {"append", "clear",  "extend",  "insert",
                                                "pop",    "remove", "reverse", "sort"};
  constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem", "setdefault", "update"};
  if (self.is_dict()) return std::ranges::find(kDictMutators, name) != std::end(kDictMutators);
  if (!self.is_list() || self.as_list().kind != ListKind::kList) return false;
  return std::ranges::find(kListMutators, name) != std::end(kListMutators);
}

std::string BuiltinFunction::repr() const {
  if (self_.is_undefined()) return fmt::format("<function {}>", builtin_.name);
  return fmt::format("<built-in method {} of {} object>", builtin_.name, self_.type_name());
}

Result<Value> BuiltinFunction::call(Runtime& runtime, Arguments arguments) {
  return invoke(builtin_, runtime, self_, std::move(arguments));
}

Result<std::int64_t> int_argument(const Value& argument, std::string_view name, std::int64_t if_missing) {
  if (argument.is_missing()) return if_missing;
  if (const auto whole = argument.integral()) return *whole;
  return template_error("'{}' must be an integer, not '{}'", name, argument.type_name());
}

Result<std::string> string_argument(const Value& argument, std::string_view name,
                                    std::string_view if_missing) {
  if (argument.is_missing()) return std::string(if_missing);
  if (argument.is_string()) return argument.as_string();
  return template_error("'{}' must be a string, not '{}'", name, argument.type_name());
}

bool flag_argument(const Value& argument, bool if_missing) {
  if (argument.is_missing()) return if_missing;
  switch (argument.kind()) {
    case Value::Kind::kBool:
      return argument.as_bool();
    case Value::Kind::kNone:
    case Value::Kind::kUndefined:
      return false;
    default:
      return argument.numeric() ? *argument.numeric() != 0 : true;
  }
}

}  // namespace kvasir::jinja
