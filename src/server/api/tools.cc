#include "server/api/tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/printable.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

// Why a tool that is no function is left out.
enum class ToolKind : std::uint8_t { kHosted, kWithoutSchema, kUnknown };

struct ToolType {
  std::string_view prefix;  // of the type: behind it may stand a version, as in "web_search_20250305"
  ToolKind kind;
};

// The types of OpenAI's and Anthropic's clients that are no functions.
constexpr auto kToolTypes = std::to_array<ToolType>({
    {"advisor", ToolKind::kHosted},
    {"code_execution", ToolKind::kHosted},
    {"code_interpreter", ToolKind::kHosted},
    {"file_search", ToolKind::kHosted},
    {"image_generation", ToolKind::kHosted},
    {"mcp", ToolKind::kHosted},
    {"programmatic_tool_calling", ToolKind::kHosted},
    {"tool_search", ToolKind::kHosted},
    {"web_fetch", ToolKind::kHosted},
    {"web_search", ToolKind::kHosted},

    {"apply_patch", ToolKind::kWithoutSchema},
    {"bash", ToolKind::kWithoutSchema},
    {"browser", ToolKind::kWithoutSchema},
    {"computer", ToolKind::kWithoutSchema},
    {"custom", ToolKind::kWithoutSchema},
    {"local_shell", ToolKind::kWithoutSchema},
    {"memory", ToolKind::kWithoutSchema},
    {"namespace", ToolKind::kWithoutSchema},
    {"shell", ToolKind::kWithoutSchema},
    {"str_replace", ToolKind::kWithoutSchema},
    {"text_editor", ToolKind::kWithoutSchema},
});

ToolKind kind_of(std::string_view type) {
  for (const auto& [prefix, kind] : kToolTypes) {
    if (type == prefix || (type.starts_with(prefix) && type[prefix.size()] == '_')) return kind;
  }
  return ToolKind::kUnknown;
}

// Its type, and the name that tells it from others: "web_search", "custom \"patch\"".
std::string short_name(JsonObject tool, std::string_view type) {
  constexpr std::size_t kLongest = 64;
  std::string text = printable(type.substr(0, kLongest));
  for (const std::string_view member : {"name", "server_label"}) {
    const auto name = find_member(tool, member);
    if (!name || !name->is_string() || name->get_string().value() == type) continue;
    return text + fmt::format(" \"{}\"", printable(name->get_string().value().substr(0, kLongest)));
  }
  const auto custom = find_member(tool, "custom");  // a chat's
  return custom && custom->is_object() ? short_name(custom->get_object().value(), text) : text;
}

// The tools that are left out, for one warning a reason.
class LeftOutTools {
 public:
  void add(JsonObject tool, std::string_view type) {
    std::vector<std::string>& names = names_[static_cast<std::size_t>(kind_of(type))];
    if (names.size() < kMostNamed) names.push_back(short_name(tool, type));
    if (names.size() == kMostNamed) names.back() = "others";
  }
  void warn(const FieldInput& field) const {
    constexpr std::array<std::string_view, 3> kReasons = {"the server runs none itself",
                                                          "only functions have a schema to show the model",
                                                          "their types are not known here"};
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i].empty()) continue;
      field.warn(fmt::format(" are left out, {}: {}", kReasons[i], fmt::join(names_[i], ", ")));
    }
  }

 private:
  static constexpr std::size_t kMostNamed = 9;
  std::array<std::vector<std::string>, 3> names_;
};

// Empty: it is a function.
ApiResult<std::string> foreign_type(const FieldInput& tool, JsonObject object, const ToolShape& shape) {
  const auto given = find_member(object, "type");
  if (!given) return std::string();
  KVASIR_TRY(std::string type, string_of(tool.at("type", *given)));
  return type == shape.type || type.empty() ? std::string() : type;
}

ApiStatus note_strict(const FieldInput& tools, const FieldInput& function, JsonObject object) {
  const auto strict = find_member(object, "strict");
  if (!strict) return {};
  KVASIR_TRY(const bool is_strict, boolean_of(function.at("strict", *strict)));
  if (is_strict) tools.warn(": strict is left out, arguments are not held to their schema");
  return {};
}

// The object that has the name and the schema.
ApiResult<FieldInput> function_of(const FieldInput& tool, JsonObject object, const ToolShape& shape) {
  if (shape.may_be_nested && find_member(object, "function"))
    return required_member(tool, object, "function");
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

ApiResult<Value> read_function(const FieldInput& tools, const FieldInput& tool, const ToolShape& shape,
                               std::vector<std::string>& names) {
  KVASIR_TRY(const JsonObject tool_object, object_of(tool));
  KVASIR_TRY(const FieldInput function, function_of(tool, tool_object, shape));
  KVASIR_TRY(const JsonObject object, object_of(function));
  KVASIR_TRY(names.emplace_back(), required_string(function, object, "name"));
  KVASIR_CHECKED(note_strict(tools, function, object));
  if (!shape.function_member.empty()) KVASIR_CHECKED(note_strict(tools, tool, tool_object));
  KVASIR_TRY(std::string description, read_description(function, object));
  KVASIR_TRY(Value schema, read_schema(function, object, shape));
  constexpr std::array<std::string_view, 4> kKnown = {"name", "description", "parameters", "strict"};
  TemplateEntries members, entries;
  add_member(members, "name", names.back());
  add_member(members, "description", std::move(description));
  add_member(members, "parameters", std::move(schema));
  for (const auto [key, json] : object) {
    const bool is_more = !shape.function_member.empty() && std::ranges::find(kKnown, key) == kKnown.end();
    if (is_more && !json.is_null()) add_member(members, key, to_template_value(json));
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
  LeftOutTools left_out;
  std::size_t index = 0;
  for (const JsonElement element : array) {
    const FieldInput tool = field.at(index++, element);
    KVASIR_TRY(const JsonObject object, object_of(tool));
    KVASIR_TRY(const std::string type, foreign_type(tool, object, shape));
    if (!type.empty()) {
      left_out.add(object, type);
      continue;
    }
    KVASIR_TRY(Value function, read_function(field, tool, shape, names));
    tools.push_back(std::move(function));
  }
  left_out.warn(field);
  return Tools{Value::list(std::move(tools)), std::move(names)};
}

}  // namespace kvasir::server::api
