// One request through the engine, from submission to its end.
#pragma once

#include <functional>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::eval {

// Asked many times a second while something runs; false ends it with kCancelled. Empty: never.
using KeepGoing = std::function<bool()>;

struct RequestRun {
  std::vector<TokenId> token_ids;             // of the first choice
  std::vector<std::vector<TokenId>> choices;  // of all
  std::vector<PositionLogprobs> prompt_logprobs;
  bool is_ended = false;  // the first choice: by a token or a stop string, not for want of tokens
  Usage usage;
};

// Blocks until it is over. Errors: as Engine::submit, the request's own, kCancelled.
Result<RequestRun> run_request(Engine& engine, Request request, const KeepGoing& keep_going);

}  // namespace kvasir::eval
