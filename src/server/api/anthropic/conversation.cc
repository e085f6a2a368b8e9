#include "server/api/anthropic/conversation.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

std::unexpected<ApiError> unknown_block(const FieldInput& block, std::string_view type) {
  const std::string path = block.name + ".type";
  return bad_request(fmt::format("{}: content of type \"{}\" is not supported here", path, printable(type)),
                     path, "unsupported_content");
}

void append_line(std::string& text, std::string_view more) {
  if (!text.empty()) text += '\n';
  text += more;
}

Value message_of(std::string_view role, std::string text) {
  TemplateEntries entries;
  add_member(entries, "role", std::string(role));
  add_member(entries, "content", std::move(text));
  return Value::dict(std::move(entries));
}

using CallIds = std::set<std::string>;  // of the conversation so far

// One message, block by block.
struct Blocks {
  std::string text;
  std::vector<Value> calls;    // of tools
  std::vector<Value> results;  // messages with what tools gave
};

ApiStatus read_tool_use(const FieldInput& block, JsonObject object, CallIds& call_ids, Blocks& blocks) {
  TemplateEntries function, call;
  KVASIR_TRY(std::string name, required_string(block, object, "name"));
  add_member(function, "name", std::move(name));
  KVASIR_TRY(const FieldInput input, required_member(block, object, "input"));
  KVASIR_TRY(const JsonObject arguments, object_of(input));
  add_member(function, "arguments", to_template_value(arguments));
  KVASIR_TRY(std::string id, required_string(block, object, "id"));
  add_member(call, "id", id);
  call_ids.insert(std::move(id));
  add_member(call, "type", std::string("function"));
  add_member(call, "function", Value::dict(std::move(function)));
  blocks.calls.push_back(Value::dict(std::move(call)));
  return {};
}

ApiStatus read_tool_result(const FieldInput& block, JsonObject object, const CallIds& call_ids,
                           Blocks& blocks) {
  TemplateEntries entries;
  add_member(entries, "role", std::string("tool"));
  std::string text;
  if (const auto content = find_member(object, "content")) {
    KVASIR_TRY(text, read_text_blocks(block.at("content", *content)));
  }
  add_member(entries, "content", std::move(text));
  KVASIR_TRY(std::string id, required_string(block, object, "tool_use_id"));
  if (!call_ids.contains(id)) {
    const std::string path = block.name + ".tool_use_id";
    return bad_request(fmt::format("{}: no tool_use before has the id \"{}\"", path, printable(id)), path);
  }
  add_member(entries, "tool_call_id", std::move(id));
  blocks.results.push_back(Value::dict(std::move(entries)));
  return {};
}

ApiStatus read_block(const FieldInput& block, bool is_assistant, CallIds& call_ids, Blocks& blocks) {
  KVASIR_TRY(const JsonObject object, object_of(block));
  KVASIR_TRY(const std::string type, required_string(block, object, "type"));
  if (type == "text") {
    KVASIR_TRY(const std::string text, required_string(block, object, "text"));
    append_line(blocks.text, text);
    return {};
  }
  if (is_assistant && (type == "thinking" || type == "redacted_thinking")) return {};
  if (is_assistant && type == "tool_use") return read_tool_use(block, object, call_ids, blocks);
  if (!is_assistant && type == "tool_result") return read_tool_result(block, object, call_ids, blocks);
  return unknown_block(block, type);
}

ApiResult<Blocks> read_blocks(const FieldInput& content, bool is_assistant, CallIds& call_ids) {
  Blocks blocks;
  if (content.json.is_string()) {
    KVASIR_TRY(blocks.text, string_of(content));
    return blocks;
  }
  if (!content.json.is_array()) return wrong_type(content, "a string or an array of blocks");
  KVASIR_TRY(const JsonArray array, array_of(content));
  std::size_t index = 0;
  for (const JsonElement block : array) {
    KVASIR_CHECKED(read_block(content.at(index++, block), is_assistant, call_ids, blocks));
  }
  return blocks;
}

ApiStatus append_message(const FieldInput& message, CallIds& call_ids, std::vector<Value>& messages,
                         bool& is_assistant) {
  KVASIR_TRY(const JsonObject object, object_of(message));
  KVASIR_TRY(const std::string role, required_string(message, object, "role"));
  is_assistant = role == "assistant";
  if (!is_assistant && role != "user") {
    const std::string path = message.name + ".role";
    return bad_request(
        fmt::format("{}: unknown role \"{}\"; known are user, assistant", path, printable(role)), path);
  }
  KVASIR_TRY(const FieldInput content, required_member(message, object, "content"));
  KVASIR_TRY(Blocks blocks, read_blocks(content, is_assistant, call_ids));
  const bool has_results = !blocks.results.empty();
  for (Value& result : blocks.results) messages.push_back(std::move(result));
  if (has_results && blocks.text.empty()) return {};
  if (blocks.calls.empty()) {
    messages.push_back(message_of(role, std::move(blocks.text)));
    return {};
  }
  TemplateEntries entries;
  add_member(entries, "role", role);
  add_member(entries, "content", std::move(blocks.text));
  add_member(entries, "tool_calls", Value::list(std::move(blocks.calls)));
  messages.push_back(Value::dict(std::move(entries)));
  return {};
}

}  // namespace

ApiResult<std::string> read_text_blocks(const FieldInput& field) {
  if (field.json.is_string()) return string_of(field);
  if (!field.json.is_array()) return wrong_type(field, "a string or an array of text blocks");
  KVASIR_TRY(const JsonArray array, array_of(field));
  std::string text;
  std::size_t index = 0;
  for (const JsonElement json : array) {
    const FieldInput block = field.at(index++, json);
    KVASIR_TRY(const JsonObject object, object_of(block));
    KVASIR_TRY(const std::string type, required_string(block, object, "type"));
    if (type != "text") return unknown_block(block, type);
    KVASIR_TRY(const std::string piece, required_string(block, object, "text"));
    append_line(text, piece);
  }
  return text;
}

ApiResult<Value> read_conversation(const FieldInput& field, const std::string& system) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  const auto count = static_cast<std::int64_t>(array.size());
  if (count == 0) return bad_request(field.name + " must not be empty", field.name);
  if (count > field.limits.messages.max)
    return std::unexpected(beyond(field.limits.messages, count, field.name));
  std::vector<Value> messages;
  if (!system.empty()) messages.push_back(message_of("system", system));
  CallIds call_ids;
  bool ends_with_assistant = false;
  std::size_t index = 0;
  for (const JsonElement message : array) {
    KVASIR_CHECKED(append_message(field.at(index++, message), call_ids, messages, ends_with_assistant));
  }
  if (ends_with_assistant) return not_supported(field.name, "an answer that is begun by the last message");
  return Value::list(std::move(messages));
}

}  // namespace kvasir::server::api
