#include "text/chat_prompt.h"

#include <string>
#include <utility>

#include "text/conversation_fit.h"
#include "text/user_text.h"

namespace kvasir::text {
namespace {

std::string token_text(const Tokenizer& tokenizer, TokenId token) {
  return token == kNoToken ? std::string() : std::string(tokenizer.vocab().text(token));
}

}  // namespace

Result<std::vector<TokenId>> encode_chat(ChatTemplateInputs inputs, const ChatTemplate& chat_template,
                                         const Tokenizer& tokenizer) {
  inputs.bos_token = token_text(tokenizer, tokenizer.vocab().bos());
  inputs.eos_token = token_text(tokenizer, tokenizer.vocab().eos());
  const ChatTemplate& chosen = inputs.tools.is_none() ? chat_template : chat_template.for_tools();
  auto prompt = render_fitted(inputs, chosen);
  if (!prompt) return make_error(prompt.error().kind, prompt.error().message, "messages");
  const std::vector<std::size_t> plain_at = plain_positions(*prompt, tokenizer);
  return tokenizer.encode(prompt->bytes(), {.parse_special = true, .plain_at = plain_at});
}

}  // namespace kvasir::text
