// When a sequence ends by what it generated. Token ids only: stop strings are the output processor's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/request.h"

namespace kvasir::sched {

struct StopCriteria {
  std::vector<TokenId> eos_token_ids;   // every end-of-generation token of the model; empty to ignore them
  std::vector<TokenId> stop_token_ids;  // the request's own
  std::int32_t max_tokens = 1;          // generated tokens; 0: the prompt only
  std::int32_t min_tokens = 0;          // end-of-generation and stop tokens count only from this many on
};

// Why the sequence ends with its newest token, the num_generated-th (counted from 1); nothing when it goes
// on.
inline std::optional<FinishReason> check_stop(const StopCriteria& criteria, TokenId newest,
                                              std::int32_t num_generated) {
  const bool is_stop = std::ranges::find(criteria.eos_token_ids, newest) != criteria.eos_token_ids.end() ||
                       std::ranges::find(criteria.stop_token_ids, newest) != criteria.stop_token_ids.end();
  if (is_stop && num_generated >= criteria.min_tokens) return FinishReason::kStop;
  if (num_generated >= criteria.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

}  // namespace kvasir::sched
