// Turns a conversation into the text a model was trained on, with the model's own chat template.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/render_options.h"
#include "jinja/template.h"
#include "jinja/value.h"
#include "kvasir/result.h"

namespace kvasir::text {

// A model's own chat template: jinja::Template whose errors say "chat template".
//
// Thread safety: immutable; render() may run on any number of threads at once.
class ChatTemplate {
 public:
  // Errors (kBadFile): as jinja::Template::parse.
  static Result<ChatTemplate> parse(std::string_view source);

  // `globals` is a dict of what the template sees (make_globals builds it). Errors: as
  // jinja::Template::render.
  Result<std::string> render(const jinja::Value& globals, const jinja::RenderOptions& options = {}) const;

  // As it was given to parse().
  std::string_view source() const { return template_.source(); }

  static constexpr std::size_t kMaxSourceBytes = jinja::Template::kMaxSourceBytes;

 private:
  explicit ChatTemplate(jinja::Template parsed) : template_(std::move(parsed)) {}

  jinja::Template template_;
};

struct ChatMessage {
  std::string role;
  std::string content;
};

// The variables that chat templates read. Absent tools and documents are none, as transformers passes them; token texts
// are left out of the globals when empty.
struct ChatTemplateInputs {
  jinja::Value messages;
  jinja::Value tools = jinja::Value::none();
  jinja::Value documents = jinja::Value::none();
  bool add_generation_prompt = true;
  std::string bos_token = {};
  std::string eos_token = {};
  std::vector<std::pair<std::string, jinja::Value>> extra = {};  // e.g. enable_thinking
};

jinja::Value make_messages(std::span<const ChatMessage> messages);
jinja::Value make_globals(const ChatTemplateInputs& inputs);

}  // namespace kvasir::text
