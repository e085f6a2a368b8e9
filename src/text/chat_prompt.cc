#include "text/chat_prompt.h"

#include <string>
#include <utility>

#include "text/user_text.h"

namespace kvasir::text {
namespace {

std::string token_text(const Tokenizer& tokenizer, TokenId token) {
  return token == kNoToken ? std::string() : std::string(tokenizer.vocab().text(token));
}

}  // namespace

Result<std::vector<TokenId>> encode_chat(ChatTemplateInputs inputs, const ChatTemplate& chat_template,
                                         const Tokenizer& tokenizer) {
  std::vector<jinja::Value> written = {inputs.messages, inputs.tools, inputs.documents};
  for (const auto& [name, value] : inputs.extra) written.push_back(value);
  KVASIR_TRY(const UserText user_text, UserText::create(tokenizer, written));

  for (jinja::Value* value : {&inputs.messages, &inputs.tools, &inputs.documents})
    *value = user_text.marked(*value);
  for (auto& [name, value] : inputs.extra) value = user_text.marked(value);
  inputs.bos_token = token_text(tokenizer, tokenizer.vocab().bos());
  inputs.eos_token = token_text(tokenizer, tokenizer.vocab().eos());
  auto rendered = chat_template.render(make_globals(inputs));
  if (!rendered) {
    return make_error(rendered.error().kind, rendered.error().message, "messages");
  }
  const UserText::Unmarked prompt = user_text.unmarked(*rendered);
  return tokenizer.encode(prompt.text, {.parse_special = true, .plain_at = prompt.plain_at});
}

}  // namespace kvasir::text
