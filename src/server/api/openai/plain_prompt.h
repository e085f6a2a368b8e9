// A prompt that no chat template has a say in: text, or token ids as they are.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kvasir/engine.h"
#include "server/api/json_input.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

struct PlainPrompt {
  std::string name;  // where it stands in the request, for its errors: "prompt[1]"
  std::variant<std::string, std::vector<TokenId>> content;
};

// A string, token ids, or an array of either, at most `limit`; none of token ids is empty. Errors (400).
ApiResult<std::vector<PlainPrompt>> prompts_of(const FieldInput& field, const Limit& limit);

// A text without tokens: an error, or the token that stands between texts.
enum class EmptyText : std::uint8_t { kRefused, kBegins };

// The prompt's token ids, at least one. Errors (400, naming the prompt): a text and no tokenizer, a text of
// no tokens, ids outside the vocabulary.
ApiResult<std::vector<TokenId>> encode_prompt(const PlainPrompt& prompt, const Engine& engine,
                                              text::EncodeOptions options,
                                              EmptyText empty_text = EmptyText::kRefused);

}  // namespace kvasir::server::api
