#include "server/api/ollama/ollama_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/conversation_input.h"
#include "server/api/field.h"
#include "server/api/openai/messages.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr auto kKnownOllamaMembers = std::to_array<std::string_view>(
    {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id", "name"});

ApiResult<std::string> text_member(const FieldInput& message, JsonObject object, std::string_view name) {
  const auto member = find_member(object, name);
  return member ? string_of(message.at(name, *member)) : std::string();
}

class ConversationReader {
 public:
  explicit ConversationReader(Warnings& warnings) : warnings_(warnings) {}

  ApiResult<Value> read(const FieldInput& message) {
    KVASIR_TRY(const JsonObject object, object_of(message));
    if (const auto images = find_member(object, "images")) {
      KVASIR_CHECKED(check_no_images(message.at("images", *images)));
    }
    KVASIR_TRY(std::string role, required_string(message, object, "role"));
    KVASIR_TRY(std::string content, text_member(message, object, "content"));
    TemplateEntries entries;
    add_member(entries, "role", role);
    add_member(entries, "content", std::move(content));
    KVASIR_TRY(std::string thinking, text_member(message, object, "thinking"));
    if (!thinking.empty()) add_member(entries, "reasoning_content", std::move(thinking));
    if (role == "tool") KVASIR_CHECKED(add_result(message, object, entries));
    if (const auto calls = find_member(object, "tool_calls"); calls && role == "assistant") {
      KVASIR_TRY(Value list, read_calls(message.at("tool_calls", *calls)));
      if (!list.as_list().items.empty()) add_member(entries, "tool_calls", std::move(list));
    }
    warn_unknown_members(message, object, kKnownOllamaMembers, warnings_);
    return Value::dict(std::move(entries));
  }

 private:
  struct OpenCall {
    std::string id, name;
  };

  ApiResult<Value> read_calls(const FieldInput& calls) {
    KVASIR_TRY(const JsonArray array, array_of(calls));
    std::vector<Value> items;
    for (const JsonElement json : array) {
      const FieldInput call = calls.at(items.size(), json);
      KVASIR_TRY(const JsonObject object, object_of(call));
      KVASIR_TRY(const FieldInput function, required_member(call, object, "function"));
      KVASIR_TRY(const JsonObject members, object_of(function));
      KVASIR_TRY(std::string id, text_member(call, object, "id"));
      if (id.empty()) id = fmt::format("call{:05}", ++num_named_calls_);
      KVASIR_TRY(std::string name, required_string(function, members, "name"));
      Value arguments = Value::dict({});
      if (const auto given = find_member(members, "arguments")) {
        KVASIR_TRY(arguments, read_call_arguments(function.at("arguments", *given)));
      }
      open_.push_back({id, name});
      TemplateEntries inner, outer;
      add_member(inner, "name", std::move(name));
      add_member(inner, "arguments", std::move(arguments));
      add_member(outer, "id", std::move(id));
      add_member(outer, "type", std::string("function"));
      add_member(outer, "function", Value::dict(std::move(inner)));
      items.push_back(Value::dict(std::move(outer)));
    }
    return Value::list(std::move(items));
  }

  ApiStatus add_result(const FieldInput& message, JsonObject object, TemplateEntries& entries) {
    KVASIR_TRY(std::string id, text_member(message, object, "tool_call_id"));
    KVASIR_TRY(std::string name, text_member(message, object, "tool_name"));
    if (name.empty()) {
      KVASIR_TRY(name, text_member(message, object, "name"));
    }
    const auto is_meant = [&](const OpenCall& call) {
      return id.empty() ? name.empty() || call.name == name : call.id == id;
    };
    if (const auto call = std::ranges::find_if(open_, is_meant); call != open_.end()) {
      id = call->id;
      name = call->name;
      open_.erase(call);
    }
    if (!name.empty()) add_member(entries, "name", std::move(name));
    if (!id.empty()) add_member(entries, "tool_call_id", std::move(id));
    return {};
  }

  Warnings& warnings_;
  std::vector<OpenCall> open_;  // without a result, in their order
  std::int32_t num_named_calls_ = 0;
};

}  // namespace

ApiStatus check_no_images(const FieldInput& images) {
  if (asks_for_nothing(images.json)) return {};
  return bad_request(images.name + ": images are not supported, the model reads text alone", images.name,
                     "unsupported_content");
}

ApiResult<Value> read_ollama_messages(const FieldInput& field, Warnings& warnings) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  const auto count = static_cast<std::int64_t>(array.size());
  if (count > field.limits.messages.max) return std::unexpected(beyond(field.limits.messages, count, field.name));
  ConversationReader reader(warnings);
  std::vector<Value> messages;
  for (const JsonElement json : array) {
    KVASIR_TRY(Value message, reader.read(field.at(messages.size(), json)));
    messages.push_back(std::move(message));
  }
  return Value::list(std::move(messages));
}

}  // namespace kvasir::server::api
