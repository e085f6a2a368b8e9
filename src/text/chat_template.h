// Turns a conversation into the text a model was trained on, with the model's own chat template.
#pragma once

#include <memory>
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

  // The same, and which of it the template did not write.
  Result<jinja::TracedText> render_traced(const jinja::Value& globals,
                                          const jinja::RenderOptions& options = {}) const;

  // The template for conversations with tools: itself, unless the model has one of its own for them.
  const ChatTemplate& for_tools() const { return for_tools_ == nullptr ? *this : *for_tools_; }
  void set_for_tools(ChatTemplate for_tools) {
    for_tools_ = std::make_shared<const ChatTemplate>(std::move(for_tools));
  }

  // As it was given to parse().
  std::string_view source() const { return template_.source(); }

  static constexpr std::size_t kMaxSourceBytes = jinja::Template::kMaxSourceBytes;

 private:
  explicit ChatTemplate(jinja::Template parsed) : template_(std::move(parsed)) {}

  jinja::Template template_;
  std::shared_ptr<const ChatTemplate> for_tools_;
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
  bool keeps_parts = false;             // contents that are lists of parts are first tried so, else as texts
  bool has_generic_tools = false;       // tools, calls and results are text, whatever the template knows
  bool continues_last_message = false;  // the prompt ends where its content does
};

jinja::Value make_messages(std::span<const ChatMessage> messages);
jinja::Value make_globals(const ChatTemplateInputs& inputs);

}  // namespace kvasir::text
