#include "server/api/anthropic/conversation.h"

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

namespace kvasir::server::api {
namespace {

using jinja::Value;

std::unexpected<ApiError> unknown_block(const FieldInput& block, std::string_view type) {
  const std::string path = block.name + ".type";
  return bad_request(fmt::format("{}: content of type \"{}\" is not supported here", path, printable(type)),
                     path, "unsupported_content");
}

void append_line(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += '\n';
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
  std::string reasoning;
  std::vector<Value> calls;    // of tools
  std::vector<Value> results;  // messages with what tools gave
};

// Facts about the messages before.
struct Reading {
  CallIds call_ids;
  Warnings& warnings;
  std::vector<Value> messages;
};

// About what ran elsewhere: the answer that came of it follows.
constexpr auto kRanElsewhere = std::to_array<std::string_view>(
    {"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
     "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
     "mcp_tool_use", "mcp_tool_result", "container_upload", "tool_reference", "compaction"});

bool ran_elsewhere(std::string_view type) {
  return std::ranges::find(kRanElsewhere, type) != kRanElsewhere.end();
}

// A text, or a document that is one: it has a plain source, or blocks of text. False: it is neither.
ApiResult<bool> append_text_block(const FieldInput& block, JsonObject object, std::string_view type,
                                  std::string& text) {
  if (type == "text") {
    KVASIR_TRY(const std::string piece, required_string(block, object, "text"));
    append_line(text, piece);
    return true;
  }
  if (type == "search_result") {
    for (const std::string_view member : {"title", "source"}) {
      const auto given = find_member(object, member);
      if (given && given->is_string()) append_line(text, given->get_string().value());
    }
    KVASIR_TRY(const FieldInput content, required_member(block, object, "content"));
    KVASIR_TRY(const std::string piece, read_text_blocks(content));
    append_line(text, piece);
    return true;
  }
  if (type != "document") return false;
  KVASIR_TRY(const FieldInput source, required_member(block, object, "source"));
  KVASIR_TRY(const JsonObject source_object, object_of(source));
  KVASIR_TRY(const std::string kind, required_string(source, source_object, "type"));
  if (kind != "text" && kind != "content") return false;
  if (const auto title = find_member(object, "title"); title && title->is_string()) {
    append_line(text, title->get_string().value());
  }
  KVASIR_TRY(const FieldInput content,
             required_member(source, source_object, kind == "text" ? "data" : "content"));
  KVASIR_TRY(const std::string piece, read_text_blocks(content));
  append_line(text, piece);
  return true;
}

// A string, or blocks. Nobody asks about a picture that a tool gave: a note stands in its place.
ApiResult<std::string> read_result_text(const FieldInput& field, Warnings& warnings) {
  if (field.json.is_string()) return string_of(field);
  if (!field.json.is_array()) return json_text_of(field);
  std::string text;
  std::size_t index = 0;
  const JsonArray elements = field.json.get_array().value();
  for (const JsonElement json : elements) {
    const FieldInput block = field.at(index++, json);
    if (!json.is_object() || !find_member(JsonObject(json.get_object()), "type")) {
      append_line(text, json.is_string() ? std::string(json.get_string().value()) : json_text_of(block));
      continue;
    }
    KVASIR_TRY(const JsonObject object, object_of(block));
    KVASIR_TRY(const std::string type, required_string(block, object, "type"));
    KVASIR_TRY(const bool is_text, append_text_block(block, object, type, text));
    if (is_text) continue;
    warn_left_out(block, type, warnings);
    if (!ran_elsewhere(type)) append_line(text, left_out_note(type));
  }
  return text;
}

ApiStatus read_tool_use(const FieldInput& block, JsonObject object, CallIds& call_ids, Blocks& blocks) {
  TemplateEntries function, call;
  KVASIR_TRY(std::string name, required_string(block, object, "name"));
  add_member(function, "name", std::move(name));
  Value arguments = Value::dict({});
  if (const auto input = find_member(object, "input")) {
    KVASIR_TRY(arguments, read_call_arguments(block.at("input", *input)));
  }
  add_member(function, "arguments", std::move(arguments));
  KVASIR_TRY(std::string id, required_string(block, object, "id"));
  add_member(call, "id", id);
  call_ids.insert(std::move(id));
  add_member(call, "type", std::string("function"));
  add_member(call, "function", Value::dict(std::move(function)));
  blocks.calls.push_back(Value::dict(std::move(call)));
  return {};
}

ApiStatus read_tool_result(const FieldInput& block, JsonObject object, Reading& reading, Blocks& blocks) {
  TemplateEntries entries;
  add_member(entries, "role", std::string("tool"));
  std::string text;
  if (const auto content = find_member(object, "content")) {
    KVASIR_TRY(text, read_result_text(block.at("content", *content), reading.warnings));
  }
  if (const auto failed = find_member(object, "is_error")) {
    KVASIR_TRY(const bool is_error, boolean_of(block.at("is_error", *failed)));
    if (is_error && text.find("rror") == std::string::npos) text.insert(0, "Error: ");
  }
  add_member(entries, "content", std::move(text));
  KVASIR_TRY(std::string id, required_string(block, object, "tool_use_id"));
  if (!reading.call_ids.contains(id)) {
    // Clients that shorten a conversation cut off calls.
    reading.warnings.add(
        fmt::format("{}.tool_use_id: no tool_use before has the id \"{}\"", block.name, printable(id.substr(0, 64))));
  }
  add_member(entries, "tool_call_id", std::move(id));
  blocks.results.push_back(Value::dict(std::move(entries)));
  return {};
}

ApiStatus read_thinking(const FieldInput& block, JsonObject object, Blocks& blocks) {
  if (!find_member(object, "thinking")) return {};
  KVASIR_TRY(const std::string thought, required_string(block, object, "thinking"));
  if (!thought.empty()) append_line(blocks.reasoning, thought);
  return {};
}

// A block that is not known is left out, unless the user asks with it.
ApiStatus read_block(const FieldInput& block, std::string_view role, Reading& reading, Blocks& blocks) {
  const bool is_assistant = role == "assistant";
  if (block.json.is_string()) {
    append_line(blocks.text, block.json.get_string().value());
    return {};
  }
  KVASIR_TRY(const JsonObject object, object_of(block));
  KVASIR_TRY(const std::string type, required_string(block, object, "type"));
  KVASIR_TRY(const bool is_text, append_text_block(block, object, type, blocks.text));
  if (is_text) return {};
  if (type == "thinking" && is_assistant) return read_thinking(block, object, blocks);
  if (type == "redacted_thinking" && is_assistant) return {};
  if (is_assistant && type == "tool_use") return read_tool_use(block, object, reading.call_ids, blocks);
  if (!is_assistant && type == "tool_result") return read_tool_result(block, object, reading, blocks);
  if (role == "user" && !ran_elsewhere(type)) return unknown_block(block, type);
  warn_left_out(block, type, reading.warnings);
  return {};
}

ApiResult<Blocks> read_blocks(const FieldInput& content, std::string_view role, Reading& reading) {
  Blocks blocks;
  if (content.json.is_string()) {
    KVASIR_TRY(blocks.text, string_of(content));
    return blocks;
  }
  if (!content.json.is_array()) return wrong_type(content, "a string or an array of blocks");
  KVASIR_TRY(const JsonArray array, array_of(content));
  std::size_t index = 0;
  for (const JsonElement block : array) {
    KVASIR_CHECKED(read_block(content.at(index++, block), role, reading, blocks));
  }
  return blocks;
}

constexpr auto kKnownMembers = std::to_array<std::string_view>({"role", "content"});

ApiStatus append_message(const FieldInput& message, Reading& reading) {
  KVASIR_TRY(const JsonObject object, object_of(message));
  KVASIR_TRY(std::string role, required_string(message, object, "role"));
  if (role == "developer") role = "system";
  if (role != "assistant" && role != "user" && role != "system") {
    const std::string path = message.name + ".role";
    return bad_request(
        fmt::format("{}: unknown role \"{}\"; known are user, assistant, system", path, printable(role)),
        path);
  }
  Blocks blocks;
  if (const auto content = find_member(object, "content")) {
    KVASIR_TRY(blocks, read_blocks(message.at("content", *content), role, reading));
  } else {
    reading.warnings.add(message.name + ".content is missing: taken as empty");
  }
  warn_unknown_members(message, object, kKnownMembers, reading.warnings);
  const bool has_results = !blocks.results.empty();
  for (Value& result : blocks.results) reading.messages.push_back(std::move(result));
  if (has_results && blocks.text.empty()) return {};
  TemplateEntries entries;
  add_member(entries, "role", role);
  add_member(entries, "content", std::move(blocks.text));
  if (!blocks.reasoning.empty()) add_member(entries, "reasoning_content", std::move(blocks.reasoning));
  if (!blocks.calls.empty()) add_member(entries, "tool_calls", Value::list(std::move(blocks.calls)));
  reading.messages.push_back(Value::dict(std::move(entries)));
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
    if (json.is_string()) {
      append_line(text, json.get_string().value());
      continue;
    }
    KVASIR_TRY(const JsonObject object, object_of(block));
    KVASIR_TRY(const std::string type, required_string(block, object, "type"));
    if (type != "text") return unknown_block(block, type);
    KVASIR_TRY(const std::string piece, required_string(block, object, "text"));
    append_line(text, piece);
  }
  return text;
}

ApiResult<Value> read_conversation(const FieldInput& field, const std::string& system, Warnings& warnings) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  const auto count = static_cast<std::int64_t>(array.size());
  if (count == 0) return bad_request(field.name + " must not be empty", field.name);
  if (count > field.limits.messages.max)
    return std::unexpected(beyond(field.limits.messages, count, field.name));
  Reading reading{.call_ids = {}, .warnings = warnings, .messages = {}};
  if (!system.empty()) reading.messages.push_back(message_of("system", system));
  std::size_t index = 0;
  for (const JsonElement message : array) KVASIR_CHECKED(append_message(field.at(index++, message), reading));
  return Value::list(std::move(reading.messages));
}

}  // namespace kvasir::server::api
