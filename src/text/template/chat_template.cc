#include "text/template/chat_template.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "text/template/interpreter.h"
#include "text/template/parser.h"

namespace kvasir::text {
std::tm local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

struct ChatTemplate::Parsed {
  jinja::Block body;
  std::string source;
};

std::string_view ChatTemplate::source() const { return parsed_->source; }

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return make_error(ErrorKind::kBadFile, fmt::format("chat template: {} bytes, the limit is {}",
                                                       source.size(), kMaxSourceBytes));
  }
  if (!is_valid_utf8(source)) return make_error(ErrorKind::kBadFile, "chat template: not valid UTF-8");
  auto body = jinja::parse_template(source);
  if (!body) return make_error(body.error().kind, "chat template, " + printable_line(body.error().message));
  return ChatTemplate(std::make_shared<const Parsed>(Parsed{std::move(*body), std::string(source)}));
}

Result<std::string> ChatTemplate::render(const jinja::Value& globals, const RenderOptions& options) const {
  jinja::Interpreter interpreter(globals, options);
  auto text = interpreter.render(parsed_->body);
  if (!text) {
    Error error = std::move(text).error();
    error.message =
        fmt::format("chat template, line {}: {}", interpreter.line(), printable_line(error.message));
    return std::unexpected(std::move(error));
  }
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
