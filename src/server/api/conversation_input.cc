#include "server/api/conversation_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "server/api/template_dict.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

// Types of parts, and the member that has the text.
struct TextPart {
  std::string_view type;
  std::string_view member;
  bool is_thought = false;
};
constexpr auto kTextParts = std::to_array<TextPart>({
    {.type = "text", .member = "text"},
    {.type = "input_text", .member = "text"},
    {.type = "output_text", .member = "text"},
    {.type = "refusal", .member = "refusal"},
    {.type = "thinking", .member = "thinking", .is_thought = true},
    {.type = "reasoning", .member = "text", .is_thought = true},
    {.type = "reasoning_text", .member = "text", .is_thought = true},
});

// A part that says no type but has a text is one.
ApiResult<std::string> type_of(const FieldInput& part, JsonObject object) {
  if (!find_member(object, "type") && find_member(object, "text")) return std::string("text");
  return required_string(part, object, "type");
}

const TextPart* text_part_of(std::string_view type) {
  const auto known = std::ranges::find(kTextParts, type, &TextPart::type);
  return known == kTextParts.end() ? nullptr : &*known;
}

std::unexpected<ApiError> no_text(const FieldInput& part, std::string_view type) {
  const std::string path = part.name + ".type";
  return bad_request(
      fmt::format("{}: content of type \"{}\" is not supported, only text", path, printable(type)), path,
      "unsupported_content");
}

TemplateEntries text_entries(std::string text) {
  TemplateEntries entries;
  add_member(entries, "type", std::string("text"));
  add_member(entries, "text", std::move(text));
  return entries;
}

Value as_text_part(JsonObject object, const TextPart& type, std::string text) {
  TemplateEntries entries = text_entries(std::move(text));
  for (const auto [key, json] : object) {
    if (key == "type" || key == type.member || json.is_null()) continue;
    add_member(entries, key, to_template_value(json));
  }
  return Value::dict(std::move(entries));
}

// A text, or parts with texts, as Mistral's clients send.
ApiResult<std::string> read_thought(const FieldInput& part, JsonObject object, std::string_view member) {
  const auto given = find_member(object, member);
  if (!given || !given->is_array()) return required_string(part, object, member);
  const FieldInput list = part.at(member, *given);
  std::string thought;
  std::size_t index = 0;
  KVASIR_TRY(const JsonArray pieces, array_of(list));
  for (const JsonElement json : pieces) {
    const FieldInput piece = list.at(index++, json);
    KVASIR_TRY(const JsonObject members, object_of(piece));
    KVASIR_TRY(const std::string text, required_string(piece, members, "text"));
    thought += text;
  }
  return thought;
}

// A tool may give its result as it is: then it is no part of any type.
bool is_plain_json(JsonElement json) {
  if (!json.is_object()) return true;
  const JsonObject object = json.get_object().value();
  return !find_member(object, "type") && !find_member(object, "text");
}

// `past`: where it is said what is left out; null: nothing is.
ApiStatus append_part(const FieldInput& part, Warnings* past, MessageContent& content, std::vector<Value>& parts) {
  if (part.json.is_string()) {
    KVASIR_TRY(std::string text, string_of(part));
    parts.push_back(Value::dict(text_entries(std::move(text))));
    return {};
  }
  if (past != nullptr && is_plain_json(part.json)) {
    parts.push_back(Value::dict(text_entries(json_text_of(part))));
    return {};
  }
  KVASIR_TRY(const JsonObject object, object_of(part));
  KVASIR_TRY(const std::string name, type_of(part, object));
  const TextPart* const type = text_part_of(name);
  if (type == nullptr) {
    if (past == nullptr) return no_text(part, name);
    warn_left_out(part, name, *past);
    parts.push_back(Value::dict(text_entries(left_out_note(name))));
    return {};
  }
  if (type->is_thought) {
    KVASIR_TRY(const std::string text, read_thought(part, object, type->member));
    if (!content.reasoning.empty()) content.reasoning += '\n';
    content.reasoning += text;
    return {};
  }
  std::string text;
  if (object.at_key(type->member).error() || !object[type->member].is_null()) {
    KVASIR_TRY(text, required_string(part, object, type->member));
  }
  parts.push_back(as_text_part(object, *type, std::move(text)));
  return {};
}

ApiResult<MessageContent> read_content(const FieldInput& content, Warnings* past) {
  MessageContent read;
  if (content.json.is_string()) {
    KVASIR_TRY(std::string text, string_of(content));
    read.value = Value::string(std::move(text));
    return read;
  }
  if (content.json.is_object() && !is_plain_json(content.json)) {  // a part without its list
    std::vector<Value> parts;
    KVASIR_CHECKED(append_part(content, past, read, parts));
    if (!parts.empty()) read.value = Value::list(std::move(parts));
    return read;
  }
  if (past != nullptr && !content.json.is_array()) {
    read.value = Value::string(json_text_of(content));
    return read;
  }
  if (!content.json.is_array()) return wrong_type(content, "a string or an array of parts");
  KVASIR_TRY(const JsonArray array, array_of(content));
  std::vector<Value> parts;
  std::size_t index = 0;
  for (const JsonElement part : array) {
    KVASIR_CHECKED(append_part(content.at(index++, part), past, read, parts));
  }
  if (!parts.empty()) read.value = Value::list(std::move(parts));
  return read;
}

}  // namespace

ApiResult<MessageContent> read_message_content(const FieldInput& content) {
  return read_content(content, nullptr);
}

ApiResult<MessageContent> read_past_content(const FieldInput& content, Warnings& warnings) {
  return read_content(content, &warnings);
}

std::string json_text_of(const FieldInput& content) {
  content.warn(" is no text: the model reads its JSON");
  return simdjson::minify(content.json);
}

std::string left_out_note(std::string_view type) {
  for (const std::string_view kind : {"image", "audio", "video", "file", "document"}) {
    if (type.contains(kind)) return fmt::format("[{} left out]", kind);
  }
  return "[part left out]";
}

void warn_unknown_members(const FieldInput& message, JsonObject object,
                          std::span<const std::string_view> known, Warnings& warnings) {
  for (const auto [key, json] : object) {
    if (json.is_null() || std::ranges::find(known, key) != known.end()) continue;
    const std::string end = fmt::format(".{}\" ignored", printable(key));
    const bool is_named = std::ranges::any_of(
        warnings.messages, [&](const std::string& warning) { return warning.ends_with(end); });
    if (!is_named) warnings.add(fmt::format("unknown field \"{}{}", message.name, end));
  }
}

void warn_left_out(const FieldInput& item, std::string_view type, Warnings& warnings) {
  warnings.add(fmt::format("{} of type \"{}\" left out", item.name, printable(type)));
}

bool ends_with_assistant(const Value& messages) {
  const Value* role = messages.as_list().items.back().as_dict().find("role");
  return role != nullptr && role->is_string() && role->as_string() == "assistant";
}

}  // namespace kvasir::server::api
