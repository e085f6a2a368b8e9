// The token that ended an answer, as clients see it.
#pragma once

#include "kvasir/request.h"

namespace kvasir {

// The token that ended a choice has no text, so it has no place among the tokens either. Not for requests that include
// what stopped them.
inline void drop_stop_token(RequestOutput& output) {
  if (output.stop_token == kNoToken || output.token_ids.empty()) return;
  if (output.token_ids.back() != output.stop_token) return;
  output.token_ids.pop_back();
  if (output.logprobs.size() > output.token_ids.size()) output.logprobs.pop_back();
}

}  // namespace kvasir
