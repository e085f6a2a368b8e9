#include "server/api/tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/printable.h"
#include "server/api/field.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr std::string_view kCustomInput = "input";  // of a custom tool, as custom_call_arguments has it
constexpr std::string_view kInputSchema =
    R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false})";

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

// A name, or a function that has one.
bool has_function_name(JsonObject object) { return find_member(object, "name") || find_member(object, "function"); }

// Empty: it is a function. Tools of APIs without types have a member of their own, such as "google_search".
ApiResult<std::string> foreign_type(const FieldInput& tool, JsonObject object, const ToolShape& shape) {
  const auto given = find_member(object, "type");
  if (!given) {
    const bool is_foreign = !has_function_name(object) && object.size() > 0;
    return is_foreign ? std::string((*object.begin()).key) : std::string();
  }
  KVASIR_TRY(std::string type, string_of(tool.at("type", *given)));
  const bool is_function = type == shape.type || type.empty() || (type == "function" && has_function_name(object));
  return is_function ? std::string() : type;
}

ApiResult<bool> read_strict(const FieldInput& function, JsonObject object) {
  const auto strict = find_member(object, "strict");
  return strict ? boolean_of(function.at("strict", *strict)) : false;
}

// The object that has the name and the schema. Some clients send one API's tools to another.
ApiResult<FieldInput> function_of(const FieldInput& tool, JsonObject object, const ToolShape& shape) {
  if (shape.may_be_nested && find_member(object, "function"))
    return required_member(tool, object, "function");
  if (shape.function_member.empty()) return tool;
  if (!find_member(object, shape.function_member) && find_member(object, "name")) return tool;
  return required_member(tool, object, shape.function_member);
}

ApiResult<std::string> read_description(const FieldInput& function, JsonObject object) {
  const auto description = find_member(object, "description");
  return description ? string_of(function.at("description", *description)) : std::string();
}

// Its text goes to `text`; one that is left out takes no arguments.
ApiResult<Value> read_schema(const FieldInput& function, JsonObject object, const ToolShape& shape, ToolSchema& text) {
  std::string_view member = shape.schema_member;
  for (const std::string_view other : {"input_schema", "parameters"}) {
    if (!find_member(object, member) && find_member(object, other)) member = other;
  }
  const auto given = find_member(object, member);
  const bool is_empty = given && given->is_array() && given->get_array().value().size() == 0;  // PHP's {}
  if (!given || is_empty) {  // it takes nothing
    TemplateEntries entries;
    add_member(entries, "type", std::string("object"));
    add_member(entries, "properties", Value::dict({}));
    text.json = R"({"type":"object","properties":{},"additionalProperties":false})";
    text.field = function.name;
    return Value::dict(std::move(entries));
  }
  KVASIR_TRY(const FieldInput schema, required_member(function, object, member));
  KVASIR_TRY(const JsonObject schema_object, object_of(schema));
  text.json = simdjson::minify(schema.json);
  text.field = schema.name;
  return to_template_value(schema_object);
}

Value function_value(TemplateEntries members) {
  TemplateEntries entries;
  add_member(entries, "type", std::string("function"));
  add_member(entries, "function", Value::dict(std::move(members)));
  return Value::dict(std::move(entries));
}

// {"type": "object"} with one text.
Value input_schema() {
  TemplateEntries input, properties, schema;
  add_member(input, "type", std::string("string"));
  add_member(properties, std::string(kCustomInput), Value::dict(std::move(input)));
  add_member(schema, "type", std::string("object"));
  add_member(schema, "properties", Value::dict(std::move(properties)));
  add_member(schema, "required", Value::list({Value::string(std::string(kCustomInput))}));
  return Value::dict(std::move(schema));
}

// The grammar of a custom tool's text, for the model to read; empty: it has none.
std::string grammar_of(JsonObject object) {
  auto format = find_member(object, "format");
  if (!format || !format->is_object()) return {};
  JsonObject members = format->get_object().value();
  if (const auto nested = find_member(members, "grammar"); nested && nested->is_object()) {  // a chat's
    members = nested->get_object().value();
  }
  const auto definition = find_member(members, "definition");
  return definition && definition->is_string() ? std::string(definition->get_string().value()) : std::string();
}

class ToolListReader {
 public:
  ToolListReader(const FieldInput& field, const ToolShape& shape) : field_(field), shape_(shape) {}

  // The tools of a namespace, or all.
  ApiStatus add_list(const FieldInput& list, std::string_view space) {
    KVASIR_TRY(const JsonArray array, array_of(list));
    std::size_t index = 0;
    for (const JsonElement element : array) {
      if (++num_tools_ > field_.limits.tools.max) {
        const auto count = std::max(num_tools_, static_cast<std::int64_t>(array.size()));
        return std::unexpected(beyond(field_.limits.tools, count, field_.name));
      }
      KVASIR_CHECKED(add(list.at(index++, element), space));
    }
    return {};
  }
  Tools finish() {
    left_out_.warn(field_);
    tools_.list = Value::list(std::move(values_));
    return std::move(tools_);
  }

 private:
  ApiStatus add(const FieldInput& tool, std::string_view space) {
    KVASIR_TRY(const JsonObject object, object_of(tool));
    KVASIR_TRY(const std::string type, foreign_type(tool, object, shape_));
    if (type.empty()) return add_function(tool, object, space);
    if (type == "custom" && add_custom(object, space, tool.name)) return {};
    const auto nested = type == "namespace" ? find_member(object, "tools") : std::nullopt;
    if (!nested || !space.empty() || asks_for_nothing(*nested)) {
      left_out_.add(object, type);
      return {};
    }
    KVASIR_TRY(const std::string name, required_string(tool, object, "name"));
    return add_list(tool.at("tools", *nested), name);
  }

  ApiStatus add_function(const FieldInput& tool, JsonObject tool_object, std::string_view space) {
    KVASIR_TRY(const FieldInput function, function_of(tool, tool_object, shape_));
    KVASIR_TRY(const JsonObject object, object_of(function));
    KVASIR_TRY(std::string name, required_string(function, object, "name"));
    ToolSchema text;
    KVASIR_TRY(text.is_strict, read_strict(function, object));
    KVASIR_TRY(const bool is_strict_tool, read_strict(tool, tool_object));
    text.is_strict = text.is_strict || is_strict_tool;
    KVASIR_TRY(std::string description, read_description(function, object));
    KVASIR_TRY(Value schema, read_schema(function, object, shape_, text));
    tools_.schemas.push_back(std::move(text));
    constexpr std::array<std::string_view, 7> kKnown = {"type",   "name",         "description", "parameters",
                                                        "strict", "input_schema", "cache_control"};
    TemplateEntries members = begin_tool({.shown_name = {}, .name = std::move(name), .space = std::string(space)},
                                         std::move(description), std::move(schema));
    for (const auto [key, json] : object) {
      const bool is_more = !shape_.function_member.empty() && std::ranges::find(kKnown, key) == kKnown.end();
      if (is_more && !json.is_null()) add_member(members, key, to_template_value(json));
    }
    values_.push_back(function_value(std::move(members)));
    return {};
  }

  // False: it has no name.
  bool add_custom(JsonObject tool, std::string_view space, const std::string& tool_field) {
    const auto nested = find_member(tool, "custom");  // a chat's
    const JsonObject object = nested && nested->is_object() ? nested->get_object().value() : tool;
    const auto name = find_member(object, "name");
    if (!name || !name->is_string()) return false;
    const auto given = find_member(object, "description");
    std::string description(given && given->is_string() ? given->get_string().value() : std::string_view());
    const std::string grammar = grammar_of(object);
    field_.warn(fmt::format(": {} is shown as a function of one text{}", short_name(tool, "custom"),
                            grammar.empty() ? "" : ", which is not held to its grammar"));
    if (!grammar.empty()) description += "\nThe input follows this grammar:\n" + grammar;
    ToolOrigin origin{.shown_name = {},
                      .name = std::string(name->get_string().value()),
                      .space = std::string(space),
                      .is_custom = true};
    tools_.schemas.push_back({.json = std::string(kInputSchema), .field = tool_field});
    values_.push_back(function_value(begin_tool(std::move(origin), std::move(description), input_schema())));
    return true;
  }

  // Name, description and parameters, as templates read them.
  TemplateEntries begin_tool(ToolOrigin origin, std::string description, Value schema) {
    origin.shown_name = shown_tool_name(origin.space, origin.name);
    if (std::ranges::find(tools_.names, origin.shown_name) != tools_.names.end()) {
      field_.warn(fmt::format(": two tools are named \"{}\"", printable(origin.shown_name.substr(0, 64))));
    }
    tools_.names.push_back(origin.shown_name);
    TemplateEntries members;
    add_member(members, "name", origin.shown_name);
    add_member(members, "description", std::move(description));
    add_member(members, "parameters", std::move(schema));
    if (origin.is_custom || !origin.space.empty()) tools_.origins.push_back(std::move(origin));
    return members;
  }

  const FieldInput& field_;
  const ToolShape& shape_;
  Tools tools_;
  std::vector<Value> values_;
  std::int64_t num_tools_ = 0;
  LeftOutTools left_out_;
};

}  // namespace

const ToolOrigin* find_origin(std::span<const ToolOrigin> origins, std::string_view shown_name) {
  const auto found = std::ranges::find(origins, shown_name, &ToolOrigin::shown_name);
  return found == origins.end() ? nullptr : &*found;
}

std::string shown_tool_name(std::string_view space, std::string_view name) {
  if (space.empty() || space == "functions") return std::string(name);
  return fmt::format("{}{}{}", space, space.ends_with('_') ? "" : "__", name);
}

std::string custom_input_of(const std::string& arguments) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view input;
  if (parser.parse(arguments).get(root) || root[kCustomInput].get(input)) return arguments;
  return std::string(input);
}

ApiResult<Tools> read_tools(const FieldInput& field, const ToolShape& shape) {
  ToolListReader reader(field, shape);
  if (field.json.is_object() && asks_for_nothing(field.json)) return reader.finish();  // Lua's []
  KVASIR_CHECKED(reader.add_list(field, {}));
  return reader.finish();
}

}  // namespace kvasir::server::api
