#include "text/conversation_form.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "text/generic_tools.h"

namespace kvasir::text {
namespace {

using jinja::Value;
using Messages = std::vector<Value>;
using Form = ConversationForm;

constexpr std::string_view kBetweenTexts = "\n\n";

Value text_part(std::string text) {
  return Value::dict({{Value::string("type"), Value::string("text")},
                      {Value::string("text"), Value::string(std::move(text))}});
}

Value content_of(const Value& message) {
  const Value* content = find_message_member(message, "content");
  return content == nullptr ? Value::string("") : *content;
}

std::vector<Value> parts_of(const Value& content) {
  if (content.is_list()) return content.as_list().items;
  return {text_part(content_text(content))};
}

bool is_empty_text(const Value& content) { return !content.is_list() && content_text(content).empty(); }

// Both contents in one: a text if both are.
Value joined_contents(const Value& first, const Value& second) {
  if (is_empty_text(first)) return second;
  if (is_empty_text(second)) return first;
  if (!first.is_list() && !second.is_list()) {
    return Value::string(content_text(first) + std::string(kBetweenTexts) + content_text(second));
  }
  std::vector<Value> parts = parts_of(first);
  for (Value& part : parts_of(second)) parts.push_back(std::move(part));
  return Value::list(std::move(parts));
}

Value new_message(std::string_view role, Value content) {
  return Value::dict({{Value::string("role"), Value::string(std::string(role))},
                      {Value::string("content"), std::move(content)}});
}

// Adds the second's content to the first.
void join_into(Value& first, const Value& second) {
  first = with_member(first, "content", joined_contents(content_of(first), content_of(second)));
}

Value without_member(const Value& message, std::string_view name) {
  std::vector<Value::Entry> entries = message.as_dict().entries();
  std::erase_if(entries, [&](const Value::Entry& entry) { return entry.first.as_string() == name; });
  return Value::dict(std::move(entries));
}

void add_tools_text(const std::string& tools_text, Messages& messages) {
  const Value text = Value::string(tools_text);
  if (!messages.empty() && role_of(messages.front()) == "system") {
    messages.front() = with_member(messages.front(), "content",
                                   joined_contents(content_of(messages.front()), text));
  } else {
    messages.insert(messages.begin(), new_message("system", text));
  }
}

void write_tools_as_text(Form::Tools tools, Messages& messages) {
  Messages changed;
  bool is_result_before = false;
  for (Value& message : messages) {
    const Value* calls = find_message_member(message, "tool_calls");
    if (calls != nullptr && calls->is_list()) {
      const std::string text = calls_as_text(content_text(content_of(message)), *calls);
      message = without_member(with_member(message, "content", Value::string(text)), "tool_calls");
    }
    const bool is_result = tools == Form::Tools::kAllAsText && role_of(message) == "tool";
    if (is_result) {
      const std::string text = tool_result_as_text(content_text(content_of(message)));
      if (is_result_before) {
        const std::string before = content_text(content_of(changed.back()));
        changed.back() = new_message("user", Value::string(before + "\n" + text));
      } else {
        changed.push_back(new_message("user", Value::string(text)));
      }
    } else {
      changed.push_back(std::move(message));
    }
    is_result_before = is_result;
  }
  messages = std::move(changed);
}

// Takes the result of the call out of those that are left: the one with its id, or else the first.
void move_result(const Value& call, Messages& results, Messages& changed) {
  if (results.empty()) return;
  const Value* id = find_message_member(call, "id");
  auto found = std::ranges::find_if(results, [&](const Value& result) {
    const Value* given = find_message_member(result, "tool_call_id");
    return id != nullptr && given != nullptr && id->is_string() && given->is_string() &&
           id->as_string() == given->as_string();
  });
  if (found == results.end()) found = results.begin();
  changed.push_back(std::move(*found));
  results.erase(found);
}

void split_calls(Messages& messages) {
  Messages changed;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Value message = messages[i];
    const Value* calls = find_message_member(message, "tool_calls");
    if (calls == nullptr || !calls->is_list() || calls->as_list().items.size() < 2) {
      changed.push_back(message);
      continue;
    }
    Messages results;
    while (i + 1 < messages.size() && role_of(messages[i + 1]) == "tool") results.push_back(messages[++i]);
    Value one = message;
    for (const Value& call : calls->as_list().items) {
      changed.push_back(with_member(one, "tool_calls", Value::list({call})));
      move_result(call, results, changed);
      one = without_member(with_member(one, "content", Value::string("")), "reasoning_content");
    }
    for (Value& result : results) changed.push_back(std::move(result));
  }
  messages = std::move(changed);
}

void set_calls_apart(Messages& messages) {
  Messages changed;
  for (Value& message : messages) {
    if (find_message_member(message, "tool_calls") == nullptr) {
      changed.push_back(std::move(message));
      continue;
    }
    const Value content = content_of(message);
    if (!is_empty_text(content)) changed.push_back(new_message("assistant", content));
    changed.push_back(with_member(message, "content", Value::none()));
  }
  messages = std::move(changed);
}

void write_arguments_as_text(Messages& messages) {
  for (Value& message : messages) {
    const Value* calls = find_message_member(message, "tool_calls");
    if (calls == nullptr || !calls->is_list()) continue;
    std::vector<Value> changed;
    for (const Value& call : calls->as_list().items) {
      const Value* function = find_message_member(call, "function");
      const Value* arguments = function == nullptr ? nullptr : find_message_member(*function, "arguments");
      const bool is_object = arguments != nullptr && !arguments->is_string();
      changed.push_back(is_object ? with_member(call, "function",
                                                with_member(*function, "arguments",
                                                            Value::string(value_as_json(*arguments))))
                                  : call);
    }
    message = with_member(message, "tool_calls", Value::list(std::move(changed)));
  }
}

void join_leading_systems(Messages& messages) {
  while (messages.size() > 1 && role_of(messages[0]) == "system" && role_of(messages[1]) == "system") {
    join_into(messages[0], messages[1]);
    messages.erase(messages.begin() + 1);
  }
}

// Takes all system messages out of the conversation; empty when there is none.
std::vector<Value> take_systems(Messages& messages) {
  Messages systems, others;
  for (Value& message : messages) {
    if (role_of(message) != "system") {
      others.push_back(std::move(message));
    } else if (systems.empty()) {
      systems.push_back(std::move(message));
    } else {
      join_into(systems[0], message);
    }
  }
  messages = std::move(others);
  return systems;
}

void put_system_in_user(Messages& messages) {
  const std::vector<Value> systems = take_systems(messages);
  if (systems.empty()) return;
  const auto user = std::ranges::find_if(messages, [](const Value& m) { return role_of(m) == "user"; });
  const Value content = content_of(systems[0]);
  if (user == messages.end()) {
    messages.insert(messages.begin(), new_message("user", content));
  } else {
    *user = with_member(*user, "content", joined_contents(content, content_of(*user)));
  }
}

bool is_common_role(const std::string& role) {
  return role == "system" || role == "user" || role == "assistant" || role == "tool";
}

void place_systems(Form::System system, Messages& messages) {
  if (system >= Form::System::kLaterAsUser) {
    for (Value& message : messages) {
      if (!is_common_role(role_of(message))) message = new_message("user", content_of(message));
    }
  }
  if (system == Form::System::kInUser) return put_system_in_user(messages);
  if (system == Form::System::kAllJoined) {
    std::vector<Value> systems = take_systems(messages);
    if (!systems.empty()) messages.insert(messages.begin(), std::move(systems[0]));
    return;
  }
  if (system == Form::System::kInPlace) return;
  join_leading_systems(messages);
  for (std::size_t i = 1; system == Form::System::kLaterAsUser && i < messages.size(); ++i) {
    if (role_of(messages[i]) == "system") messages[i] = new_message("user", content_of(messages[i]));
  }
}

void put_text_in_results(Messages& messages) {
  Messages changed;
  for (Value& message : messages) {
    const bool is_behind_result = !changed.empty() && role_of(changed.back()) == "tool" &&
                                  role_of(message) == "user";
    if (is_behind_result) {
      join_into(changed.back(), message);
    } else {
      changed.push_back(std::move(message));
    }
  }
  messages = std::move(changed);
}

void merge_roles(Messages& messages) {
  Messages merged;
  for (Value& message : messages) {
    const std::string role = role_of(message);
    const bool is_like_before = !merged.empty() && role_of(merged.back()) == role && role != "tool" &&
                                find_message_member(merged.back(), "tool_calls") == nullptr &&
                                find_message_member(message, "tool_calls") == nullptr;
    if (is_like_before) {
      join_into(merged.back(), message);
    } else {
      merged.push_back(std::move(message));
    }
  }
  messages = std::move(merged);
}

void let_user_start(Messages& messages) {
  const auto first = std::ranges::find_if(messages, [](const Value& m) { return role_of(m) != "system"; });
  if (first != messages.end() && role_of(*first) == "user") return;
  messages.insert(first, new_message("user", Value::string("")));
}

// Parts that are all text have one.
bool is_textual(const Value& content) {
  return !content.is_list() || std::ranges::all_of(content.as_list().items, [](const Value& part) {
    return part.is_string() || find_message_member(part, "text") != nullptr;
  });
}

void shape_contents(Form::Contents contents, Messages& messages) {
  for (Value& message : messages) {
    const Value content = content_of(message);
    if (contents == Form::Contents::kText && content.is_list() && is_textual(content)) {
      message = with_member(message, "content", Value::string(content_text(content)));
    } else if (contents == Form::Contents::kParts && !content.is_list() && !content.is_none()) {
      message = with_member(message, "content", Value::list(parts_of(content)));
    }
  }
}

}  // namespace

const Value* find_message_member(const Value& message, std::string_view name) {
  return message.is_dict() ? message.as_dict().find(name) : nullptr;
}

std::string role_of(const Value& message) {
  const Value* role = find_message_member(message, "role");
  return role != nullptr && role->is_string() ? role->as_string() : std::string();
}

Value with_member(const Value& message, std::string_view name, Value value) {
  std::vector<Value::Entry> entries = message.as_dict().entries();
  const auto old = std::ranges::find_if(
      entries, [&](const Value::Entry& entry) { return entry.first.as_string() == name; });
  if (old == entries.end()) {
    entries.emplace_back(Value::string(std::string(name)), std::move(value));
  } else {
    old->second = std::move(value);
  }
  return Value::dict(std::move(entries));
}

std::string content_text(const Value& content) {
  if (content.is_string()) return content.as_string();
  if (!content.is_list()) return {};
  std::string text;
  for (const Value& part : content.as_list().items) {
    const Value* piece = part.is_string() ? &part : find_message_member(part, "text");
    if (piece == nullptr || !piece->is_string()) continue;
    if (!text.empty()) text += '\n';
    text += piece->as_string();
  }
  return text;
}

Value in_form(const Value& messages, const ConversationForm& form, const std::string& tools_text) {
  Messages changed = messages.as_list().items;
  if (form.contents == Form::Contents::kText) shape_contents(form.contents, changed);
  if (!tools_text.empty()) add_tools_text(tools_text, changed);
  if (form.tools == Form::Tools::kOneCallEach) split_calls(changed);
  if (form.tools == Form::Tools::kCallsApart) set_calls_apart(changed);
  if (form.tools >= Form::Tools::kCallsAsText) write_tools_as_text(form.tools, changed);
  if (form.has_text_arguments) write_arguments_as_text(changed);
  place_systems(form.system, changed);
  if (form.tools == Form::Tools::kTextInResults) put_text_in_results(changed);
  if (form.merges_roles) merge_roles(changed);
  if (form.starts_with_user) let_user_start(changed);
  if (form.contents == Form::Contents::kParts) shape_contents(form.contents, changed);
  return Value::list(std::move(changed));
}

}  // namespace kvasir::text
