// Turns a conversation into the text a model was trained on, with the model's own chat template.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/result.h"
#include "text/template/render_options.h"
#include "text/template/value.h"

namespace kvasir::text {

// A parsed chat template: the Jinja subset that published templates use, with the semantics of Jinja2 as
// transformers sets it up (immutable sandbox, trim_blocks, lstrip_blocks, loop controls, its own tojson,
// raise_exception, strftime_now and {% generation %}). No includes, imports or template inheritance.
//
// Thread safety: immutable; render() may run on any number of threads at once.
class ChatTemplate {
 public:
  // Errors (kBadFile): source above kMaxSourceBytes, invalid UTF-8, a syntax error; the message has the line.
  static Result<ChatTemplate> parse(std::string_view source);

  // `globals` is a dict of what the template sees (make_globals builds it). Errors name the template's
  // line: kUsage for what the template refuses (raise_exception) or cannot compute, kUnmet for a limit.
  Result<std::string> render(const jinja::Value& globals, const RenderOptions& options = {}) const;

  // As it was given to parse().
  std::string_view source() const;

  static constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

struct ChatMessage {
  std::string role;
  std::string content;
};

// What chat templates read. Absent tools and documents are none, as transformers passes them; token texts
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
