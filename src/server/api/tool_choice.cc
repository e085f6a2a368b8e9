#include "server/api/tool_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

ApiStatus read_choice_word(const FieldInput& field, std::string word, ChatRequest& request) {
  if (word == "any") word = "required";
  if (word != "none" && word != "auto" && word != "required") {
    return bad_request(field.name + " must be \"none\", \"auto\", \"required\" or a function", field.name);
  }
  request.tool_choice = std::move(word);
  return {};
}

// The names among [{"type": "function", "name"}] or [{"type": "function", "function": {"name"}}]; tools that
// are no functions have been left out.
ApiResult<std::vector<std::string>> read_allowed_names(const FieldInput& field) {
  KVASIR_TRY(const JsonArray tools, array_of(field));
  std::vector<std::string> names;
  std::size_t index = 0;
  for (const JsonElement element : tools) {
    const FieldInput tool = field.at(index++, element);
    KVASIR_TRY(const JsonObject object, object_of(tool));
    const auto function = find_member(object, "function");
    const FieldInput named = function ? tool.at("function", *function) : tool;
    KVASIR_TRY(const JsonObject named_object, object_of(named));
    const auto name = find_member(named_object, "name");
    if (!name) continue;
    KVASIR_TRY(names.emplace_back(), string_of(named.at("name", *name)));
  }
  return names;
}

ApiStatus read_allowed_tools(const FieldInput& field, JsonObject object, ChatRequest& request) {
  const auto nested = find_member(object, "allowed_tools");  // a chat's
  const FieldInput allowed = nested ? field.at("allowed_tools", *nested) : field;
  KVASIR_TRY(const JsonObject members, object_of(allowed));
  if (const auto mode = find_member(members, "mode")) {
    KVASIR_TRY(std::string word, string_of(allowed.at("mode", *mode)));
    KVASIR_CHECKED(read_choice_word(field, std::move(word), request));
  }
  KVASIR_TRY(const FieldInput tools, required_member(allowed, members, "tools"));
  KVASIR_TRY(request.allowed_tools, read_allowed_names(tools));
  return {};
}

}  // namespace

ApiStatus read_openai_tool_choice(const FieldInput& field, ChatRequest& request) {
  request.choice_field = field.name;
  if (!field.json.is_bool() && !field.json.is_number() && asks_for_nothing(field.json)) return {};
  if (field.json.is_string()) {
    KVASIR_TRY(std::string word, string_of(field));
    return read_choice_word(field, std::move(word), request);
  }
  KVASIR_TRY(const JsonObject object, object_of(field));
  const bool is_plain_function = !find_member(object, "type") && find_member(object, "function");
  std::string type = "function";  // where only the function is named
  if (!is_plain_function) {
    KVASIR_TRY(type, required_string(field, object, "type"));
  }
  if (type == "tool") type = "function";  // Anthropic's
  if (type == "allowed_tools") return read_allowed_tools(field, object, request);
  if (type == "none" || type == "auto" || type == "required" || type == "any") {
    return read_choice_word(field, std::move(type), request);
  }
  if (type != "function" && type != "custom") {
    return bad_request(field.name + ": the server has no tools of its own to call", field.name);
  }
  const auto nested = find_member(object, type);  // a chat's
  const FieldInput named = nested ? field.at(type, *nested) : field;
  KVASIR_TRY(const JsonObject named_object, object_of(named));
  if (!nested && !find_member(named_object, "name")) {
    return bad_request(fmt::format("{}: the name of the {} is missing", field.name, type == "custom" ? "tool" : type),
                       field.name, "missing_parameter");
  }
  KVASIR_TRY(request.named_tool, required_string(named, named_object, "name"));
  request.tool_choice = "required";
  return {};
}

ApiStatus read_anthropic_tool_choice(const FieldInput& field, ChatRequest& request) {
  const bool is_list = field.json.is_array();
  if (field.json.is_string() || (is_list && asks_for_nothing(field.json))) return read_openai_tool_choice(field, request);
  request.choice_field = field.name;
  KVASIR_TRY(const JsonObject object, object_of(field));
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(const std::string type, required_string(field, object, "type"));
  if (type == "function" || type == "required") return read_openai_tool_choice(field, request);
  if (const auto disabled = find_member(object, "disable_parallel_tool_use")) {
    KVASIR_TRY(const bool one_at_most, boolean_of(field.at("disable_parallel_tool_use", *disabled)));
    request.parallel_tool_calls = !one_at_most;
  }
  if (type == "tool") {
    KVASIR_TRY(request.named_tool, required_string(field, object, "name"));
  }
  if (type != "none" && type != "auto" && type != "any" && type != "tool") {
    const std::string path = field.name + ".type";
    return bad_request(path + " must be \"auto\", \"any\", \"tool\" or \"none\"", path);
  }
  request.tool_choice = type == "any" || type == "tool" ? "required" : type;
  return {};
}

ApiStatus refuse_forced_choice(const FieldInput& field) {
  if (field.json.is_string()) {
    const std::string_view choice = field.json.get_string().value();
    if (choice == "none" || choice == "auto" || choice.empty()) return {};
  }
  return not_supported(field.name, "a call, except in a chat,");
}

namespace {

void keep_tools_of(const std::vector<std::string>& allowed, ChatRequest& request, Warnings& warnings) {
  std::vector<Value> tools;
  std::vector<std::string> names;
  std::vector<ToolSchema> schemas;
  for (std::size_t i = 0; i < request.tool_names.size(); ++i) {
    if (std::ranges::find(allowed, request.tool_names[i]) == allowed.end()) continue;
    names.push_back(request.tool_names[i]);
    tools.push_back(request.tools.as_list().items[i]);
    schemas.push_back(std::move(request.tool_schemas[i]));
  }
  for (const std::string& name : allowed) {
    if (std::ranges::find(names, name) != names.end()) continue;
    warnings.add(fmt::format("tool_choice: \"{}\" is none of the tools", printable(name.substr(0, 64))));
    break;
  }
  request.tools = names.empty() ? Value::none() : Value::list(std::move(tools));
  request.tool_names = std::move(names);
  request.tool_schemas = std::move(schemas);
}

// A tool in a namespace has another name for the model.
ApiStatus find_named_tool(ChatRequest& request) {
  if (request.named_tool.empty() || std::ranges::find(request.tool_names, request.named_tool) != request.tool_names.end()) {
    return {};
  }
  const auto origin = std::ranges::find(request.tool_origins, request.named_tool, &ToolOrigin::name);
  if (origin == request.tool_origins.end()) {
    return bad_request(fmt::format("{}: \"{}\" is none of the tools", request.choice_field,
                                   printable(request.named_tool.substr(0, 64))),
                       request.choice_field);
  }
  request.named_tool = origin->shown_name;
  return {};
}

}  // namespace

ApiStatus keep_allowed_tools(ChatRequest& request, Warnings& warnings) {
  if (request.allowed_tools) keep_tools_of(*request.allowed_tools, request, warnings);
  if (request.must_call_tools() && request.tool_names.empty()) {
    return bad_request(request.choice_field + ": a call is demanded, but there is no tool to call", request.choice_field);
  }
  return find_named_tool(request);
}

}  // namespace kvasir::server::api
