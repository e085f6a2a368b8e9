#include "server/api/openai/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr auto kKnownMembers = std::to_array<std::string_view>(
    {"role", "content", "name", "tool_call_id", "reasoning_content", "reasoning", "reasoning_details",
     "refusal", "tool_calls", "function_call", "annotations", "prefix", "partial"});

// A name, such as templates have for roles of their own.
bool is_role_name(std::string_view role) {
  constexpr std::size_t kLongestBytes = 64;
  const auto is_fine = [](char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '-' || c == '.';
  };
  return !role.empty() && role.size() <= kLongestBytes && std::ranges::all_of(role, is_fine);
}

ApiResult<std::string> read_role(const FieldInput& message, JsonObject object, Warnings& warnings) {
  KVASIR_TRY(std::string role, required_string(message, object, "role"));
  if (role == "developer") return std::string("system");
  if (role == "function") return std::string("tool");
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  if (std::ranges::find(kRoles, role) != kRoles.end()) return role;
  constexpr std::string_view kKnown = "common are system, developer, user, assistant, tool";
  const std::string path = message.name + ".role";
  if (!is_role_name(role)) {
    return bad_request(fmt::format("{}: \"{}\" is no role; {}", path, printable(role), kKnown), path);
  }
  warnings.add(fmt::format("{}: \"{}\" is for the chat template to know; {}", path, role, kKnown));
  return role;
}

Value call_of(std::string name, Value arguments, std::optional<std::string> id) {
  TemplateEntries inner, outer;
  add_member(inner, "name", std::move(name));
  add_member(inner, "arguments", std::move(arguments));
  if (id) add_member(outer, "id", std::move(*id));
  add_member(outer, "type", std::string("function"));
  add_member(outer, "function", Value::dict(std::move(inner)));
  return Value::dict(std::move(outer));
}

// A function's name and arguments.
ApiResult<Value> read_function(const FieldInput& function, std::optional<std::string> id) {
  KVASIR_TRY(const JsonObject object, object_of(function));
  KVASIR_TRY(std::string name, required_string(function, object, "name"));
  Value arguments = Value::dict({});
  if (const auto given = find_member(object, "arguments")) {
    KVASIR_TRY(arguments, read_call_arguments(function.at("arguments", *given)));
  }
  return call_of(std::move(name), std::move(arguments), std::move(id));
}

// Calls of custom tools have a text instead of arguments.
ApiResult<Value> read_tool_call(const FieldInput& call) {
  KVASIR_TRY(const JsonObject object, object_of(call));
  std::optional<std::string> id;
  if (const auto given = find_member(object, "id")) {
    KVASIR_TRY(id, string_of(call.at("id", *given)));
  }
  if (const auto custom = find_member(object, "custom")) {
    const FieldInput field = call.at("custom", *custom);
    KVASIR_TRY(const JsonObject custom_object, object_of(field));
    KVASIR_TRY(std::string name, required_string(field, custom_object, "name"));
    KVASIR_TRY(std::string input, required_string(field, custom_object, "input"));
    return call_of(std::move(name), custom_call_arguments(std::move(input)), std::move(id));
  }
  KVASIR_TRY(const FieldInput function, required_member(call, object, "function"));
  return read_function(function, std::move(id));
}

ApiResult<Value> read_tool_calls(const FieldInput& calls) {
  if (calls.json.is_object() && asks_for_nothing(calls.json)) return Value::list({});  // Lua's []
  KVASIR_TRY(const JsonArray array, array_of(calls));
  std::vector<Value> items;
  std::size_t index = 0;
  for (const JsonElement call : array) {
    KVASIR_TRY(Value item, read_tool_call(calls.at(index++, call)));
    items.push_back(std::move(item));
  }
  return Value::list(std::move(items));
}

ApiResult<std::string> read_reasoning(const FieldInput& message, JsonObject object, Warnings& warnings) {
  for (const std::string_view name : {"reasoning_content", "reasoning"}) {
    const auto member = find_member(object, name);
    if (!member) continue;
    if (member->is_string()) return string_of(message.at(name, *member));
    warnings.add(fmt::format("{}.{} is no string and left out", message.name, name));
  }
  return std::string();
}

// What the assistant called, by the newer field or the older.
ApiResult<Value> read_calls(const FieldInput& message, JsonObject object) {
  if (const auto calls = find_member(object, "tool_calls")) {
    return read_tool_calls(message.at("tool_calls", *calls));
  }
  if (const auto call = find_member(object, "function_call"); call && !asks_for_nothing(*call)) {
    KVASIR_TRY(Value one, read_function(message.at("function_call", *call), std::nullopt));
    return Value::list({std::move(one)});
  }
  return Value::list({});
}

// A refusal is what an assistant says when it says nothing else.
ApiResult<MessageContent> read_content(const FieldInput& message, JsonObject object, std::string_view role,
                                       Warnings& warnings) {
  MessageContent content;
  const bool is_assistant = role == "assistant";
  const auto given = find_member(object, "content");
  if (given) {
    const FieldInput field = message.at("content", *given);
    const bool is_past = is_assistant || role == "tool";
    KVASIR_TRY(content, is_past ? read_past_content(field, warnings) : read_message_content(field));
  } else if (!is_assistant) {
    warnings.add(message.name + ".content is missing: taken as empty");
  }
  const bool is_empty = content.value.is_string() && content.value.as_string().empty();
  const auto refusal = is_assistant && is_empty ? find_member(object, "refusal") : std::nullopt;
  if (refusal && refusal->is_string()) {
    KVASIR_TRY(std::string text, string_of(message.at("refusal", *refusal)));
    content.value = Value::string(std::move(text));
  }
  return content;
}

ApiResult<Value> read_message(const FieldInput& message, Warnings& warnings) {
  KVASIR_TRY(const JsonObject object, object_of(message));
  TemplateEntries entries;
  KVASIR_TRY(std::string role, read_role(message, object, warnings));
  const bool is_assistant = role == "assistant";
  KVASIR_TRY(MessageContent content, read_content(message, object, role, warnings));
  add_member(entries, "role", std::move(role));
  add_member(entries, "content", std::move(content.value));
  for (const std::string_view name : {"name", "tool_call_id"}) {
    if (const auto member = find_member(object, name)) {
      KVASIR_TRY(std::string text, string_of(message.at(name, *member)));
      add_member(entries, name, std::move(text));
    }
  }
  KVASIR_TRY(std::string reasoning, read_reasoning(message, object, warnings));
  if (reasoning.empty()) reasoning = std::move(content.reasoning);
  if (!reasoning.empty()) add_member(entries, "reasoning_content", std::move(reasoning));
  if (is_assistant) {
    KVASIR_TRY(Value list, read_calls(message, object));
    if (!list.as_list().items.empty()) add_member(entries, "tool_calls", std::move(list));
  }
  warn_unknown_members(message, object, kKnownMembers, warnings);
  return Value::dict(std::move(entries));
}

}  // namespace

ApiResult<Value> read_call_arguments(const FieldInput& arguments) {
  if (arguments.json.is_object()) return to_template_value(arguments.json);
  if (arguments.json.is_array() && asks_for_nothing(arguments.json)) return Value::dict({});  // PHP's {}
  KVASIR_TRY(const std::string text, string_of(arguments));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Value::dict({});
  const auto parsed = JsonDocument::parse(text, arguments.limits);
  return parsed ? to_template_value(parsed->root()) : Value::string(text);
}

Value custom_call_arguments(std::string input) {
  TemplateEntries entries;
  add_member(entries, "input", std::move(input));
  return Value::dict(std::move(entries));
}

bool continues_last_message(const FieldInput& field) {
  if (!field.json.is_array() || field.json.get_array().value().size() == 0) return false;
  JsonElement last;
  const JsonArray messages = field.json.get_array().value();
  for (const JsonElement message : messages) last = message;
  if (!last.is_object()) return false;
  const JsonObject object = last.get_object().value();
  const auto role = find_member(object, "role");
  const bool is_assistant = role && role->is_string() && role->get_string().value() == "assistant";
  return is_assistant && std::ranges::any_of(std::array{"prefix", "partial"}, [&](const char* name) {
           const auto member = find_member(object, name);
           return member && member->is_bool() && member->get_bool().value();
         });
}

ApiResult<Value> read_messages(const FieldInput& field, Warnings& warnings) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  const auto count = static_cast<std::int64_t>(array.size());
  if (count == 0) return bad_request(field.name + " must not be empty", field.name);
  if (count > field.limits.messages.max) {
    return std::unexpected(beyond(field.limits.messages, count, field.name));
  }
  std::vector<Value> messages;
  for (const JsonElement message : array) {
    KVASIR_TRY(Value value, read_message(field.at(messages.size(), message), warnings));
    messages.push_back(std::move(value));
  }
  return Value::list(std::move(messages));
}

}  // namespace kvasir::server::api
