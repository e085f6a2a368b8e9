#include "server/api/responses/input_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "server/api/openai/messages.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

std::unexpected<ApiError> unknown_type(const FieldInput& part, std::string_view type) {
  const std::string path = part.name + ".type";
  return bad_request(fmt::format("{}: \"{}\" is not supported here", path, printable(type)), path,
                     "unsupported_content");
}

ApiStatus append_part(const FieldInput& part, std::string& text) {
  KVASIR_TRY(const JsonObject object, object_of(part));
  KVASIR_TRY(const std::string type, required_string(part, object, "type"));
  constexpr std::array<std::string_view, 4> kTexts = {"input_text", "output_text", "text", "refusal"};
  if (std::ranges::find(kTexts, type) == kTexts.end()) return unknown_type(part, type);
  KVASIR_TRY(const std::string piece, required_string(part, object, type == "refusal" ? "refusal" : "text"));
  if (!text.empty()) text += '\n';
  text += piece;
  return {};
}

ApiResult<std::string> read_content(const FieldInput& content) {
  if (content.json.is_string()) return string_of(content);
  if (!content.json.is_array()) return wrong_type(content, "a string or an array of parts");
  KVASIR_TRY(const JsonArray parts, array_of(content));
  std::string text;
  std::size_t index = 0;
  for (const JsonElement part : parts) KVASIR_CHECKED(append_part(content.at(index++, part), text));
  return text;
}

Value message_of(std::string role, std::string text) {
  TemplateEntries entries;
  add_member(entries, "role", std::move(role));
  add_member(entries, "content", std::move(text));
  return Value::dict(std::move(entries));
}

// Messages in the making: an assistant's turn stays open, because calls may follow its text.
class Conversation {
 public:
  void add(Value message) {
    close();
    messages_.push_back(std::move(message));
  }
  void add_assistant_text(std::string text) {
    close();
    is_open_ = true;
    text_ = std::move(text);
  }
  void add_call(std::string id, Value call) {
    is_open_ = true;
    calls_.push_back(std::move(call));
    call_ids_.insert(std::move(id));
  }
  bool has_call(const std::string& id) const { return call_ids_.contains(id); }
  Value finish() {
    close();
    return Value::list(std::move(messages_));
  }

 private:
  void close() {
    if (!std::exchange(is_open_, false)) return;
    TemplateEntries entries;
    add_member(entries, "role", std::string("assistant"));
    add_member(entries, "content", std::exchange(text_, {}));
    if (!calls_.empty()) add_member(entries, "tool_calls", Value::list(std::exchange(calls_, {})));
    messages_.push_back(Value::dict(std::move(entries)));
  }

  std::vector<Value> messages_;
  std::set<std::string> call_ids_;
  bool is_open_ = false;
  std::string text_;
  std::vector<Value> calls_;
};

ApiStatus read_message(const FieldInput& item, JsonObject object, Conversation& conversation) {
  KVASIR_TRY(std::string role, required_string(item, object, "role"));
  KVASIR_TRY(const FieldInput content, required_member(item, object, "content"));
  KVASIR_TRY(std::string text, read_content(content));
  if (role == "assistant") {
    conversation.add_assistant_text(std::move(text));
    return {};
  }
  if (role == "developer") role = "system";
  if (role != "system" && role != "user") {
    const std::string path = item.name + ".role";
    return bad_request(fmt::format("{}: unknown role \"{}\"; known are system, developer, user, assistant",
                                   path, printable(role)),
                       path);
  }
  conversation.add(message_of(std::move(role), std::move(text)));
  return {};
}

ApiStatus read_call(const FieldInput& item, JsonObject object, Conversation& conversation) {
  TemplateEntries function, call;
  KVASIR_TRY(std::string name, required_string(item, object, "name"));
  add_member(function, "name", std::move(name));
  KVASIR_TRY(const FieldInput arguments, required_member(item, object, "arguments"));
  KVASIR_TRY(Value value, read_call_arguments(arguments));
  add_member(function, "arguments", std::move(value));
  KVASIR_TRY(std::string id, required_string(item, object, "call_id"));
  add_member(call, "id", id);
  add_member(call, "type", std::string("function"));
  add_member(call, "function", Value::dict(std::move(function)));
  conversation.add_call(std::move(id), Value::dict(std::move(call)));
  return {};
}

ApiStatus read_call_output(const FieldInput& item, JsonObject object, Conversation& conversation) {
  TemplateEntries entries;
  KVASIR_TRY(const FieldInput output, required_member(item, object, "output"));
  KVASIR_TRY(std::string text, read_content(output));
  add_member(entries, "role", std::string("tool"));
  add_member(entries, "content", std::move(text));
  KVASIR_TRY(std::string id, required_string(item, object, "call_id"));
  if (!conversation.has_call(id)) {
    const std::string path = item.name + ".call_id";
    return bad_request(fmt::format("{}: no call before has the id \"{}\"", path, printable(id)), path);
  }
  add_member(entries, "tool_call_id", std::move(id));
  conversation.add(Value::dict(std::move(entries)));
  return {};
}

ApiStatus read_item(const FieldInput& item, Conversation& conversation) {
  KVASIR_TRY(const JsonObject object, object_of(item));
  std::string type = "message";
  if (const auto member = find_member(object, "type")) {
    KVASIR_TRY(type, string_of(item.at("type", *member)));
  }
  if (type == "message") return read_message(item, object, conversation);
  if (type == "function_call") return read_call(item, object, conversation);
  if (type == "function_call_output") return read_call_output(item, object, conversation);
  if (type == "reasoning") return {};
  return unknown_type(item, type);
}

}  // namespace

ApiResult<Value> read_input(const FieldInput& field, const std::string& instructions) {
  Conversation conversation;
  if (!instructions.empty()) conversation.add(message_of("system", instructions));
  if (field.json.is_string()) {
    KVASIR_TRY(std::string text, string_of(field));
    conversation.add(message_of("user", std::move(text)));
    return conversation.finish();
  }
  if (!field.json.is_array()) return wrong_type(field, "a string or an array of items");
  KVASIR_TRY(const JsonArray items, array_of(field));
  const auto count = static_cast<std::int64_t>(items.size());
  if (count == 0) return bad_request(field.name + " must not be empty", field.name);
  if (count > field.limits.messages.max)
    return std::unexpected(beyond(field.limits.messages, count, field.name));
  std::size_t index = 0;
  for (const JsonElement item : items) KVASIR_CHECKED(read_item(field.at(index++, item), conversation));
  return conversation.finish();
}

}  // namespace kvasir::server::api
