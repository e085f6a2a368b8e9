#include "text/chat_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "text/conversation_form.h"

namespace kvasir::text {
namespace {

using jinja::Value;

std::unexpected<Error> unusable(std::string_view field, std::string_view why) {
  return make_error(ErrorKind::kUsage, fmt::format("{}: {}", field, why), std::string(field));
}

Result<Value> parse(std::string_view field, std::string_view json) {
  auto value = Value::from_json(json);
  if (!value) return unusable(field, value.error().message);
  return value;
}

Status check_message(std::size_t index, const Value& message) {
  const std::string name = fmt::format("messages[{}]", index);
  if (!message.is_dict()) {
    return unusable("messages", fmt::format("{} must be an object, is {}", name, message.type_name()));
  }
  const Value* role = message.as_dict().find("role");
  if (role == nullptr || !role->is_string()) return unusable("messages", name + " needs a role, a string");
  const Value* content = message.as_dict().find("content");
  // An assistant may have called tools, thought or refused, and said nothing else.
  const bool may_be_empty = role->as_string() == "assistant" ||
                            message.as_dict().find("tool_calls") != nullptr;
  if (content == nullptr) return may_be_empty ? Status() : unusable("messages", name + " has no content");
  if (content->is_string() || content->is_list() || (content->is_none() && may_be_empty)) return {};
  return unusable("messages", fmt::format("{}.content must be a string or a list of parts, is {}", name,
                                          content->type_name()));
}

// Templates print a null. Beside calls they expect it.
Value without_null_content(const Value& message) {
  const Value* content = find_message_member(message, "content");
  const bool is_null = content == nullptr || content->is_none();
  if (!is_null || find_message_member(message, "tool_calls") != nullptr) return message;
  return with_member(message, "content", Value::string(""));
}

Result<Value> read_messages(std::string_view json) {
  KVASIR_TRY(Value messages, parse("messages", json));
  if (!messages.is_list() || messages.as_list().items.empty()) {
    return unusable("messages", "must be an array of at least one object");
  }
  std::vector<Value> read;
  for (const Value& message : messages.as_list().items) {
    KVASIR_CHECKED(check_message(read.size(), message));
    read.push_back(without_null_content(message));
  }
  return Value::list(std::move(read));
}

Result<std::vector<std::pair<std::string, Value>>> read_variables(std::string_view json) {
  KVASIR_TRY(const Value variables, parse("template_kwargs", json));
  if (!variables.is_dict()) return unusable("template_kwargs", "must be an object");
  constexpr std::array<std::string_view, 4> kTaken = {"messages", "tools", "documents",
                                                      "add_generation_prompt"};
  std::vector<std::pair<std::string, Value>> extra;
  for (const auto& [key, value] : variables.as_dict().entries()) {
    const std::string& name = key.as_string();
    if (std::ranges::find(kTaken, name) != kTaken.end()) {
      return unusable("template_kwargs", name + " has a place of its own");
    }
    extra.emplace_back(name, value);
  }
  return extra;
}

}  // namespace

Result<ChatTemplateInputs> read_chat(std::string_view messages, std::string_view tools,
                                     std::string_view template_kwargs) {
  ChatTemplateInputs inputs;
  KVASIR_TRY(inputs.messages, read_messages(messages));
  if (!tools.empty()) {
    KVASIR_TRY(inputs.tools, parse("tools", tools));
    if (!inputs.tools.is_list()) return unusable("tools", "must be an array");
    // No tools and an empty list of them look alike to a template's `if tools`, but not to `tools is none`.
    if (inputs.tools.as_list().items.empty()) inputs.tools = Value::none();
  }
  if (!template_kwargs.empty()) {
    KVASIR_TRY(inputs.extra, read_variables(template_kwargs));
  }
  return inputs;
}

}  // namespace kvasir::text
