#include "jinja/macro.h"

namespace kvasir::jinja {

std::optional<Value> Macro::attribute(std::string_view name) {
  if (name == "name") return Value::string(definition_.name);
  if (name == "caller") return Value::boolean(definition_.uses_caller);
  if (name == "catch_kwargs") return Value::boolean(definition_.uses_kwargs);
  if (name == "catch_varargs") return Value::boolean(definition_.uses_varargs);
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const std::string& parameter : definition_.parameters) names.push_back(Value::string(parameter));
  return Value::list(std::move(names), ListKind::kTuple);
}

Result<Value> Macro::call(Runtime& /*runtime*/, Arguments arguments) {
  return interpreter_.call_macro(definition_, closure_, std::move(arguments));
}

}  // namespace kvasir::jinja
