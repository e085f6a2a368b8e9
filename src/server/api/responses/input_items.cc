#include "server/api/responses/input_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "server/api/conversation_input.h"
#include "server/api/openai/messages.h"
#include "server/api/template_dict.h"
#include "server/api/tools.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

Value message_of(std::string role, Value content) {
  TemplateEntries entries;
  add_member(entries, "role", std::move(role));
  add_member(entries, "content", std::move(content));
  return Value::dict(std::move(entries));
}

// Messages in the making: an assistant's turn stays open, because calls may follow its text.
class Conversation {
 public:
  void add(Value message) {
    close();
    messages_.push_back(std::move(message));
  }
  void add_assistant_content(Value content) {
    if (!is_thinking_) close();
    is_open_ = true;
    is_thinking_ = false;
    content_ = std::move(content);
  }
  // Before what the assistant says or calls.
  void add_reasoning(std::string_view text) {
    if (!is_thinking_) close();
    is_open_ = is_thinking_ = true;
    if (!reasoning_.empty()) reasoning_ += '\n';
    reasoning_ += text;
  }
  void add_call(std::string id, Value call) {
    is_open_ = true;
    is_thinking_ = false;
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
    if (std::exchange(is_thinking_, false)) {  // and nothing came of it
      reasoning_.clear();
      return;
    }
    TemplateEntries entries;
    add_member(entries, "role", std::string("assistant"));
    add_member(entries, "content", std::exchange(content_, Value::string("")));
    if (!reasoning_.empty()) add_member(entries, "reasoning_content", std::exchange(reasoning_, {}));
    if (!calls_.empty()) add_member(entries, "tool_calls", Value::list(std::exchange(calls_, {})));
    messages_.push_back(Value::dict(std::move(entries)));
  }

  std::vector<Value> messages_;
  std::set<std::string> call_ids_;
  bool is_open_ = false;
  bool is_thinking_ = false;  // and has said nothing yet
  Value content_ = Value::string("");
  std::string reasoning_;
  std::vector<Value> calls_;
};

struct Reading {
  Conversation conversation;
  Warnings& warnings;
  std::string first_left_out = {};  // and its type; empty: nothing was
  std::string left_out_type = {};
  // Something was left out, so a result may lack its call.
  bool has_gaps() const { return !first_left_out.empty(); }
};

constexpr auto kKnownMembers =
    std::to_array<std::string_view>({"type", "role", "content", "id", "status", "phase", "name", "object"});

ApiStatus read_message(const FieldInput& item, JsonObject object, Reading& reading) {
  warn_unknown_members(item, object, kKnownMembers, reading.warnings);
  KVASIR_TRY(std::string role, required_string(item, object, "role"));
  MessageContent content;
  if (const auto given = find_member(object, "content")) {
    const FieldInput field = item.at("content", *given);
    const bool is_past = role == "assistant";
    KVASIR_TRY(content, is_past ? read_past_content(field, reading.warnings) : read_message_content(field));
  }
  if (role == "assistant") {
    if (!content.reasoning.empty()) reading.conversation.add_reasoning(content.reasoning);
    reading.conversation.add_assistant_content(std::move(content.value));
    return {};
  }
  if (role == "developer") role = "system";
  if (role != "system" && role != "user") {
    const std::string path = item.name + ".role";
    return bad_request(fmt::format("{}: unknown role \"{}\"; known are system, developer, user, assistant",
                                   path, printable(role)),
                       path);
  }
  reading.conversation.add(message_of(std::move(role), std::move(content.value)));
  return {};
}

// The id by which a result names its call.
ApiResult<std::string> read_call_id(const FieldInput& item, JsonObject object) {
  if (!find_member(object, "call_id") && find_member(object, "id"))
    return required_string(item, object, "id");
  return required_string(item, object, "call_id");
}

// Calls of tools, which differ in where the arguments are.
struct CallItem {
  std::string_view type;
  std::string_view name;  // of the tool; empty: the item has it
  std::string_view arguments;
};
constexpr auto kCalls = std::to_array<CallItem>({
    {"function_call", "", "arguments"},
    {"custom_tool_call", "", "input"},
    {"mcp_call", "", "arguments"},
    {"local_shell_call", "local_shell", "action"},
    {"shell_call", "shell", "action"},
    {"apply_patch_call", "apply_patch", "operation"},
});
constexpr auto kResults = std::to_array<std::string_view>({"function_call_output", "custom_tool_call_output",
                                                           "local_shell_call_output", "shell_call_output",
                                                           "apply_patch_call_output"});
ApiStatus read_call(const FieldInput& item, JsonObject object, const CallItem& kind, Reading& reading) {
  TemplateEntries function, call;
  std::string name(kind.name);
  if (name.empty()) {
    KVASIR_TRY(name, required_string(item, object, "name"));
  }
  if (const auto space = find_member(object, "namespace"); space && space->is_string()) {
    name = shown_tool_name(space->get_string().value(), name);
  }
  add_member(function, "name", std::move(name));
  Value arguments = Value::dict({});
  if (const auto given = find_member(object, kind.arguments)) {
    const FieldInput field = item.at(kind.arguments, *given);
    if (kind.type == "custom_tool_call") {
      KVASIR_TRY(std::string input, string_of(field));
      arguments = custom_call_arguments(std::move(input));
    } else {
      KVASIR_TRY(arguments, read_call_arguments(field));
    }
  }
  add_member(function, "arguments", std::move(arguments));
  KVASIR_TRY(std::string id, read_call_id(item, object));
  add_member(call, "id", id);
  add_member(call, "type", std::string("function"));
  add_member(call, "function", Value::dict(std::move(function)));
  reading.conversation.add_call(std::move(id), Value::dict(std::move(call)));
  return {};
}

void add_result(std::string id, Value content, Reading& reading) {
  TemplateEntries entries;
  add_member(entries, "role", std::string("tool"));
  add_member(entries, "content", std::move(content));
  add_member(entries, "tool_call_id", std::move(id));
  reading.conversation.add(Value::dict(std::move(entries)));
}

// The output of a shell is a list of what its commands gave: shown as JSON, unless it is a content.
ApiResult<Value> read_output(const FieldInput& item, JsonObject object, std::string_view type,
                             Warnings& warnings) {
  const auto output = find_member(object, "output");
  if (!output) return Value::string("");
  const FieldInput field = item.at("output", *output);
  if (type == "shell_call_output" || output->is_object()) return Value::string(simdjson::minify(*output));
  KVASIR_TRY(MessageContent content, read_past_content(field, warnings));
  return std::move(content.value);
}

ApiStatus read_call_output(const FieldInput& item, JsonObject object, std::string_view type,
                           Reading& reading) {
  KVASIR_TRY(Value output, read_output(item, object, type, reading.warnings));
  KVASIR_TRY(std::string id, read_call_id(item, object));
  if (!reading.conversation.has_call(id) && !reading.has_gaps()) {
    // Clients that shorten a conversation cut off calls.
    reading.warnings.add(fmt::format("{}.call_id: no call before has the id \"{}\"", item.name, printable(id.substr(0, 64))));
  }
  add_result(std::move(id), std::move(output), reading);
  return {};
}

// Its result, which an mcp_call has with it.
ApiStatus read_mcp_result(const FieldInput& item, JsonObject object, Reading& reading) {
  for (const std::string_view member : {"output", "error"}) {
    const auto given = find_member(object, member);
    if (!given) continue;
    KVASIR_TRY(std::string id, read_call_id(item, object));
    std::string text(given->is_string() ? given->get_string().value() : std::string_view());
    if (!given->is_string()) text = simdjson::minify(*given);
    add_result(std::move(id), Value::string(std::move(text)), reading);
    return {};
  }
  return {};
}

// What the model thought, where it can be read; what is encrypted is for the server that made it.
ApiStatus read_reasoning(const FieldInput& item, JsonObject object, Reading& reading) {
  for (const std::string_view member : {"content", "summary"}) {
    const auto parts = find_member(object, member);
    if (!parts || !parts->is_array()) continue;
    bool has_text = false;
    std::size_t index = 0;
    const FieldInput field = item.at(member, *parts);
    const JsonArray elements = parts->get_array().value();
    for (const JsonElement json : elements) {
      const FieldInput part = field.at(index++, json);
      KVASIR_TRY(const JsonObject part_object, object_of(part));
      const auto text = find_member(part_object, "text");
      if (!text || !text->is_string()) continue;
      reading.conversation.add_reasoning(text->get_string().value());
      has_text = true;
    }
    if (has_text) return {};
  }
  return {};
}

ApiStatus read_item(const FieldInput& item, Reading& reading) {
  KVASIR_TRY(const JsonObject object, object_of(item));
  std::string type = "message";
  if (const auto member = find_member(object, "type")) {
    KVASIR_TRY(type, string_of(item.at("type", *member)));
  } else if (!find_member(object, "role") && find_member(object, "id")) {
    type = "item_reference";
  }
  if (type == "message") return read_message(item, object, reading);
  if (type == "reasoning") return read_reasoning(item, object, reading);
  if (const auto call = std::ranges::find(kCalls, type, &CallItem::type); call != kCalls.end()) {
    KVASIR_CHECKED(read_call(item, object, *call, reading));
    return type == "mcp_call" ? read_mcp_result(item, object, reading) : ApiStatus();
  }
  if (std::ranges::find(kResults, type) != kResults.end())
    return read_call_output(item, object, type, reading);
  // Items about work that ran elsewhere: the answer that came of it follows. Clients add kinds of their own.
  if (!reading.has_gaps()) {
    reading.first_left_out = item.name + ".type";
    reading.left_out_type = type;
  }
  warn_left_out(item, type, reading.warnings);
  return {};
}

ApiStatus read_items(const FieldInput& field, std::int64_t count_before, Reading& reading) {
  if (!field.json.is_array()) return wrong_type(field, "a string or an array of items");
  KVASIR_TRY(const JsonArray items, array_of(field));
  const auto count = static_cast<std::int64_t>(items.size()) + count_before;
  if (count > field.limits.messages.max)
    return std::unexpected(beyond(field.limits.messages, count, field.name));
  std::size_t index = 0;
  for (const JsonElement item : items) KVASIR_CHECKED(read_item(field.at(index++, item), reading));
  return {};
}

}  // namespace

ApiResult<Value> read_input(const FieldInput& field, const FieldInput* before, const std::string& instructions,
                            Warnings& warnings) {
  Reading reading{.conversation = {}, .warnings = warnings};
  Conversation& conversation = reading.conversation;
  if (!instructions.empty()) conversation.add(message_of("system", Value::string(instructions)));
  std::int64_t count_before = 0;
  if (before != nullptr) {
    KVASIR_CHECKED(read_items(*before, 0, reading));
    count_before = static_cast<std::int64_t>(before->json.get_array().value().size());
  }
  if (field.json.is_string()) {
    KVASIR_TRY(std::string text, string_of(field));
    conversation.add(message_of("user", Value::string(std::move(text))));
    return conversation.finish();
  }
  if (before == nullptr && field.json.is_array() && field.json.get_array().value().size() == 0) {
    return bad_request(field.name + " must not be empty", field.name);
  }
  KVASIR_CHECKED(read_items(field, count_before, reading));
  Value messages = conversation.finish();
  if (messages.as_list().items.empty() && reading.has_gaps()) {
    return bad_request(fmt::format("{}: \"{}\" is not supported here, and no other item can be shown to the model",
                                   reading.first_left_out, printable(reading.left_out_type)),
                       reading.first_left_out, "unsupported_content");
  }
  if (messages.as_list().items.empty()) {
    return bad_request(field.name + " has no item that can be shown to the model", field.name);
  }
  return messages;
}

}  // namespace kvasir::server::api
