#include "cli/prompt.h"

#include "base/check.h"
#include "text/chat_prompt.h"
#include "text/tokenizer.h"

namespace kvasir::cli {

Result<std::vector<TokenId>> encode_conversation(const Engine& engine,
                                                 std::span<const text::ChatMessage> messages) {
  CHECK(engine.tokenizer() != nullptr && engine.chat_template() != nullptr);
  text::ChatTemplateInputs inputs;
  inputs.messages = text::make_messages(messages);
  return text::encode_chat(std::move(inputs), *engine.chat_template(), *engine.tokenizer());
}

std::vector<TokenId> encode_raw(const Engine& engine, std::string_view text, bool parse_special) {
  CHECK(engine.tokenizer() != nullptr);
  return engine.tokenizer()->encode(text, {.parse_special = parse_special});
}

}  // namespace kvasir::cli
