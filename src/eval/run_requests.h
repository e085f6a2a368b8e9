// Many requests through the engine, some at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

struct Generated {
  std::vector<TokenId> token_ids;  // of the first choice, and the token that ended it
  bool is_ended = false;           // by such a token or a stop string, not for want of tokens
};

// The i-th request, asked for when there is a place for it.
using NextRequest = std::function<Request(std::size_t index)>;

// Runs `num_requests`, at most `num_streams` at once; answers in their order. `progress` is told how many have ended.
// Blocks. Errors: as Engine::submit, the first request's own, kCancelled.
Result<std::vector<Generated>> run_requests(Engine& engine, std::size_t num_requests, std::size_t num_streams,
                                            const NextRequest& next, const KeepGoing& keep_going,
                                            const std::function<void(std::size_t num_done)>& progress);

}  // namespace kvasir::eval
