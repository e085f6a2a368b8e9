#include "engine/public_text.h"

#include <algorithm>
#include <array>

#include "text/chat_prompt.h"

namespace kvasir {
namespace {

using Tokens = std::vector<TokenId>;

// Two texts that have nothing in common, not even how their first token joins what is before it.
constexpr std::array<const char*, 2> kContinuations = {"a", " 7"};

// The common tokens do not depend on the text that follows.
Tokens common_beginning(const Tokens& a, const Tokens& b) {
  return {a.begin(), std::ranges::mismatch(a, b).in1};
}

Tokens of_prompts(const std::string& text, const text::Tokenizer& tokenizer) {
  const auto encode = [&](const char* rest) {
    return tokenizer.encode(text + rest, {.parse_special = false, .add_special = true});
  };
  return common_beginning(encode(kContinuations[0]), encode(kContinuations[1]));
}

// Empty when the template refuses.
Tokens of_conversations(const std::string& text, const text::ChatTemplate& chat_template,
                        const text::Tokenizer& tokenizer) {
  const auto encode = [&](const char* question) {
    const std::array<text::ChatMessage, 2> messages = {{{"system", text}, {"user", question}}};
    return text::encode_chat({.messages = text::make_messages(messages)}, chat_template, tokenizer);
  };
  const auto first = encode(kContinuations[0]), second = encode(kContinuations[1]);
  return first && second ? common_beginning(*first, *second) : Tokens{};
}

}  // namespace

Result<std::vector<Tokens>> public_prefixes_of(std::span<const std::string> texts,
                                               const text::Tokenizer* tokenizer,
                                               const text::ChatTemplate* chat_template) {
  if (texts.empty()) return std::vector<Tokens>{};
  if (tokenizer == nullptr) {
    return make_error(ErrorKind::kUsage, "public_prefixes: the model has no tokenizer", "public_prefixes");
  }
  std::vector<Tokens> prefixes;
  for (const std::string& text : texts) {
    prefixes.push_back(of_prompts(text, *tokenizer));
    if (chat_template != nullptr) prefixes.push_back(of_conversations(text, *chat_template, *tokenizer));
  }
  std::erase_if(prefixes, &Tokens::empty);
  return prefixes;
}

}  // namespace kvasir
