#include "text/chat_template.h"

namespace kvasir::text {
namespace {

std::unexpected<Error> of_chat(Error error) {
  error.message.insert(0, "chat ");
  return std::unexpected(std::move(error));
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  auto parsed = jinja::Template::parse(source);
  if (!parsed) return of_chat(std::move(parsed).error());
  return ChatTemplate(std::move(*parsed));
}

Result<std::string> ChatTemplate::render(const jinja::Value& globals,
                                         const jinja::RenderOptions& options) const {
  auto text = template_.render(globals, options);
  if (!text) return of_chat(std::move(text).error());
  return text;
}

Result<jinja::TracedText> ChatTemplate::render_traced(const jinja::Value& globals,
                                                      const jinja::RenderOptions& options) const {
  auto text = template_.render_traced(globals, options);
  if (!text) return of_chat(std::move(text).error());
  return text;
}

jinja::Value make_messages(std::span<const ChatMessage> messages) {
  using jinja::Value;
  std::vector<Value> list;
  for (const ChatMessage& message : messages) {
    list.push_back(Value::dict({{Value::string("role"), Value::string(message.role)},
                                {Value::string("content"), Value::string(message.content)}}));
  }
  return Value::list(std::move(list));
}

jinja::Value make_globals(const ChatTemplateInputs& inputs) {
  using jinja::Value;
  std::vector<Value::Entry> entries = {
      {Value::string("messages"), inputs.messages},
      {Value::string("tools"), inputs.tools},
      {Value::string("documents"), inputs.documents},
      {Value::string("add_generation_prompt"), Value::boolean(inputs.add_generation_prompt)},
  };
  if (!inputs.bos_token.empty())
    entries.emplace_back(Value::string("bos_token"), Value::string(inputs.bos_token));
  if (!inputs.eos_token.empty())
    entries.emplace_back(Value::string("eos_token"), Value::string(inputs.eos_token));
  for (const auto& [name, value] : inputs.extra) entries.emplace_back(Value::string(name), value);
  return Value::dict(std::move(entries));
}

}  // namespace kvasir::text
