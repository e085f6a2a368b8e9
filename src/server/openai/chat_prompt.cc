#include "server/openai/chat_prompt.h"

#include <string>
#include <utility>

#include "server/openai/user_text.h"

namespace kvasir::server {
namespace {

using text::jinja::Value;

std::string token_text(const text::Tokenizer& tokenizer, TokenId token) {
  return token == kNoToken ? std::string() : std::string(tokenizer.vocab().text(token));
}

}  // namespace

ApiResult<std::vector<TokenId>> chat_prompt(const ChatRequest& request,
                                            const text::ChatTemplate& chat_template,
                                            const text::Tokenizer& tokenizer) {
  std::vector<Value> written = {request.messages, request.tools};
  for (const auto& [name, value] : request.template_kwargs) written.push_back(value);
  KVASIR_TRY(const UserText user_text, UserText::create(tokenizer, written));

  text::ChatTemplateInputs inputs;
  inputs.messages = user_text.marked(request.messages);
  inputs.tools = user_text.marked(request.tools);
  inputs.add_generation_prompt = request.add_generation_prompt;
  inputs.bos_token = token_text(tokenizer, tokenizer.vocab().bos());
  inputs.eos_token = token_text(tokenizer, tokenizer.vocab().eos());
  for (const auto& [name, value] : request.template_kwargs) {
    inputs.extra.emplace_back(name, user_text.marked(value));
  }
  const Result<std::string> rendered = chat_template.render(text::make_globals(inputs));
  if (!rendered) {
    return bad_request("chat template: " + rendered.error().message, "messages", "chat_template_error");
  }
  const UserText::Unmarked prompt = user_text.unmarked(*rendered);
  return tokenizer.encode(prompt.text, {.parse_special = true, .plain_at = prompt.plain_at});
}

}  // namespace kvasir::server
