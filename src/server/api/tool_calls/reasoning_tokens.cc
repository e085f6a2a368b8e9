#include "server/api/tool_calls/reasoning_tokens.h"

namespace kvasir::server::api {

bool ReasoningTokens::add(TokenId token) {
  if (!thinks_) return false;
  const bool was_inside = reader_.is_in_reasoning();
  ToolCallReader::Parts parts;
  reader_.push(tokenizer_.decode_token(token, true), parts);
  const bool is_thought = was_inside || reader_.is_in_reasoning();
  if (is_thought) ++count_;
  return is_thought;
}

}  // namespace kvasir::server::api
