#include "server/api/openai/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

ApiResult<std::string> read_role(const FieldInput& message, JsonObject object) {
  KVASIR_TRY(std::string role, required_string(message, object, "role"));
  if (role == "developer") return std::string("system");
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  if (std::ranges::find(kRoles, role) != kRoles.end()) return role;
  const std::string path = message.name + ".role";
  return bad_request(
      fmt::format("{}: unknown role \"{}\"; known are system, developer, user, assistant, tool", path,
                  printable(role)),
      path);
}

ApiStatus append_part(const FieldInput& part, std::string& text) {
  KVASIR_TRY(const JsonObject object, object_of(part));
  KVASIR_TRY(const std::string type, required_string(part, object, "type"));
  if (type != "text" && type != "refusal") {
    const std::string path = part.name + ".type";
    return bad_request(
        fmt::format("{}: content of type \"{}\" is not supported, only text", path, printable(type)), path,
        "unsupported_content");
  }
  KVASIR_TRY(const std::string piece, required_string(part, object, type));
  if (!text.empty()) text += '\n';
  text += piece;
  return {};
}

ApiResult<std::string> read_content(const FieldInput& content) {
  if (content.json.is_string()) return string_of(content);
  if (!content.json.is_array()) return wrong_type(content, "a string or an array of parts");
  const JsonArray parts = content.json.get_array().value();
  std::string text;
  std::size_t index = 0;
  for (const JsonElement part : parts) {
    KVASIR_CHECKED(append_part(content.at(index++, part), text));
  }
  return text;
}

ApiResult<Value> read_tool_call(const FieldInput& call) {
  KVASIR_TRY(const JsonObject object, object_of(call));
  KVASIR_TRY(const FieldInput function, required_member(call, object, "function"));
  KVASIR_TRY(const JsonObject function_object, object_of(function));
  TemplateEntries inner;
  KVASIR_TRY(std::string name, required_string(function, function_object, "name"));
  add_member(inner, "name", std::move(name));
  KVASIR_TRY(const FieldInput arguments, required_member(function, function_object, "arguments"));
  KVASIR_TRY(Value value, read_call_arguments(arguments));
  add_member(inner, "arguments", std::move(value));
  TemplateEntries outer;
  if (const auto id = find_member(object, "id")) {
    KVASIR_TRY(std::string text, string_of(call.at("id", *id)));
    add_member(outer, "id", std::move(text));
  }
  add_member(outer, "type", std::string("function"));
  add_member(outer, "function", Value::dict(std::move(inner)));
  return Value::dict(std::move(outer));
}

ApiResult<Value> read_tool_calls(const FieldInput& calls) {
  KVASIR_TRY(const JsonArray array, array_of(calls));
  std::vector<Value> items;
  std::size_t index = 0;
  for (const JsonElement call : array) {
    KVASIR_TRY(Value item, read_tool_call(calls.at(index++, call)));
    items.push_back(std::move(item));
  }
  return Value::list(std::move(items));
}

ApiResult<Value> read_message(const FieldInput& message) {
  KVASIR_TRY(const JsonObject object, object_of(message));
  TemplateEntries entries;
  KVASIR_TRY(std::string role, read_role(message, object));
  const bool is_assistant = role == "assistant";
  add_member(entries, "role", std::move(role));

  const auto calls = is_assistant ? find_member(object, "tool_calls") : std::nullopt;
  const auto content = find_member(object, "content");
  if (content) {
    KVASIR_TRY(std::string text, read_content(message.at("content", *content)));
    add_member(entries, "content", std::move(text));
  } else if (calls) {
    add_member(entries, "content", std::string());
  } else {
    const std::string path = message.name + ".content";
    return bad_request(path + " is missing", path, "missing_parameter");
  }
  for (const std::string_view name : {"name", "tool_call_id", "reasoning_content"}) {
    if (const auto member = find_member(object, name)) {
      KVASIR_TRY(std::string text, string_of(message.at(name, *member)));
      add_member(entries, name, std::move(text));
    }
  }
  if (calls) {
    KVASIR_TRY(Value list, read_tool_calls(message.at("tool_calls", *calls)));
    if (!list.as_list().items.empty()) add_member(entries, "tool_calls", std::move(list));
  }
  return Value::dict(std::move(entries));
}

}  // namespace

ApiResult<Value> read_call_arguments(const FieldInput& arguments) {
  if (arguments.json.is_object()) return to_template_value(arguments.json);
  KVASIR_TRY(const std::string text, string_of(arguments));
  const auto parsed = JsonDocument::parse(text, arguments.limits);
  return parsed ? to_template_value(parsed->root()) : Value::string(text);
}

ApiResult<Value> read_messages(const FieldInput& field) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  const auto count = static_cast<std::int64_t>(array.size());
  if (count == 0) return bad_request(field.name + " must not be empty", field.name);
  if (count > field.limits.messages.max) {
    return std::unexpected(beyond(field.limits.messages, count, field.name));
  }
  std::vector<Value> messages;
  for (const JsonElement message : array) {
    KVASIR_TRY(Value value, read_message(field.at(messages.size(), message)));
    messages.push_back(std::move(value));
  }
  return Value::list(std::move(messages));
}

}  // namespace kvasir::server::api
