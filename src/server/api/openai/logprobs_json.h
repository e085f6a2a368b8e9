// Log probabilities in the shapes that clients know.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "kvasir/request.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

// An impossible token: JSON has no infinity.
inline constexpr float kLowestLogprob = -9999.0f;
float finite_logprob(float logprob);

// [{"token","logprob","bytes","top_logprobs":[...]}, ...]
void write_token_logprobs(JsonWriter& json, std::span<const PositionLogprobs> positions,
                          const text::Tokenizer& tokenizer);

// Chat: {"content":[...],"refusal":null}
void write_chat_logprobs(JsonWriter& json, std::span<const PositionLogprobs> positions,
                         const text::Tokenizer& tokenizer);

// vLLM's prompt_logprobs: [null, {"<id>":{"logprob","rank","decoded_token"}}, ...]
void write_prompt_logprobs(JsonWriter& json, std::span<const PositionLogprobs> positions,
                           const text::Tokenizer* tokenizer);

// Legacy: {"tokens","token_logprobs","top_logprobs","text_offset"}; the offsets run on from piece to piece of
// a stream, and count characters of the text the client has.
//
// Thread safety: none; one per choice.
class LegacyLogprobs {
 public:
  // Null without a tokenizer: tokens are then named "token_id:7" and the text is empty.
  LegacyLogprobs(const text::Tokenizer* tokenizer, bool render_special, bool at_text_start)
      : tokenizer_(tokenizer), render_special_(render_special), at_text_start_(at_text_start) {}

  // The text that the next tokens were made from, which the client gets as it stands: control tokens that it
  // names have their place in it. Borrowed until they are written.
  void begin_echo(std::string_view text) { echo_ = text; }

  // A position whose chosen token is kNoToken, the first of a prompt, has no log probability; then `tokens`
  // names it. Requires: one token per position.
  void write(JsonWriter& json, std::span<const TokenId> tokens, std::span<const PositionLogprobs> positions);

 private:
  std::string name_of(TokenId token) const;
  // Where in the text the token, the next one, begins.
  std::int64_t next_offset(TokenId token);
  void write_alternatives(JsonWriter& json, const PositionLogprobs& position) const;

  const text::Tokenizer* tokenizer_;
  bool render_special_;
  bool at_text_start_;
  std::string_view echo_ = {};  // what is left of it
  std::int64_t offset_ = 0;
};

}  // namespace kvasir::server::api
