#include "server/api/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

ApiStatus check_type(const FieldInput& tool, JsonObject object, const ToolShape& shape) {
  if (shape.may_lack_type && !find_member(object, "type")) return {};
  KVASIR_TRY(const std::string type, required_string(tool, object, "type"));
  if (type == shape.type) return {};
  return not_supported(tool.name + ".type", fmt::format("a tool of type \"{}\"", printable(type)));
}

ApiStatus check_not_strict(const FieldInput& function, JsonObject object) {
  const auto strict = find_member(object, "strict");
  if (!strict) return {};
  const FieldInput field = function.at("strict", *strict);
  KVASIR_TRY(const bool is_strict, boolean_of(field));
  if (is_strict) return not_supported(field.name, "true (arguments that are held to the schema)");
  return {};
}

// The object that has the name and the schema.
ApiResult<FieldInput> function_of(const FieldInput& tool, JsonObject object, const ToolShape& shape) {
  if (shape.function_member.empty()) return tool;
  return required_member(tool, object, shape.function_member);
}

ApiResult<std::string> read_description(const FieldInput& function, JsonObject object) {
  const auto description = find_member(object, "description");
  return description ? string_of(function.at("description", *description)) : std::string();
}

ApiResult<Value> read_schema(const FieldInput& function, JsonObject object, const ToolShape& shape) {
  const auto given = find_member(object, shape.schema_member);
  const bool is_empty = given && given->is_array() && given->get_array().value().size() == 0;  // PHP's {}
  if (shape.may_lack_schema && (!given || is_empty)) {
    TemplateEntries entries;
    add_member(entries, "type", std::string("object"));
    add_member(entries, "properties", Value::dict({}));
    return Value::dict(std::move(entries));
  }
  KVASIR_TRY(const FieldInput schema, required_member(function, object, shape.schema_member));
  KVASIR_TRY(const JsonObject schema_object, object_of(schema));
  return to_template_value(schema_object);
}

ApiResult<Value> read_tool(const FieldInput& tool, const ToolShape& shape, std::vector<std::string>& names) {
  KVASIR_TRY(const JsonObject tool_object, object_of(tool));
  KVASIR_CHECKED(check_type(tool, tool_object, shape));
  KVASIR_TRY(const FieldInput function, function_of(tool, tool_object, shape));
  KVASIR_TRY(const JsonObject object, object_of(function));
  KVASIR_TRY(names.emplace_back(), required_string(function, object, "name"));
  KVASIR_CHECKED(check_not_strict(function, object));
  KVASIR_TRY(std::string description, read_description(function, object));
  KVASIR_TRY(Value schema, read_schema(function, object, shape));
  constexpr std::array<std::string_view, 4> kKnown = {"name", "description", "parameters", "strict"};
  TemplateEntries members, entries;
  add_member(members, "name", names.back());
  add_member(members, "description", std::move(description));
  add_member(members, "parameters", std::move(schema));
  for (const auto [key, json] : object) {
    const bool is_more = !shape.function_member.empty() && std::ranges::find(kKnown, key) == kKnown.end();
    if (is_more) add_member(members, key, to_template_value(json));
  }
  add_member(entries, "type", std::string("function"));
  add_member(entries, "function", Value::dict(std::move(members)));
  return Value::dict(std::move(entries));
}

}  // namespace

ApiResult<Tools> read_tools(const FieldInput& field, const ToolShape& shape) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  const auto count = static_cast<std::int64_t>(array.size());
  if (count > field.limits.tools.max) return std::unexpected(beyond(field.limits.tools, count, field.name));
  std::vector<Value> tools;
  std::vector<std::string> names;
  for (const JsonElement element : array) {
    KVASIR_TRY(Value tool, read_tool(field.at(tools.size(), element), shape, names));
    tools.push_back(std::move(tool));
  }
  return Tools{Value::list(std::move(tools)), std::move(names)};
}

}  // namespace kvasir::server::api
