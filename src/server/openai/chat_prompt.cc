#include "server/openai/chat_prompt.h"

#include <utility>

#include "text/chat_prompt.h"

namespace kvasir::server {

ApiResult<std::vector<TokenId>> chat_prompt(const ChatRequest& request,
                                            const text::ChatTemplate& chat_template,
                                            const text::Tokenizer& tokenizer) {
  text::ChatTemplateInputs inputs;
  inputs.messages = request.messages;
  inputs.tools = request.tools;
  inputs.add_generation_prompt = request.add_generation_prompt;
  inputs.extra = request.template_kwargs;
  auto prompt = text::encode_chat(std::move(inputs), chat_template, tokenizer);
  if (!prompt) return bad_request(prompt.error().message, "messages", "chat_template_error");
  return std::move(*prompt);
}

}  // namespace kvasir::server
