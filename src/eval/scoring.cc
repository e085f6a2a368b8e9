#include "eval/scoring.h"

#include <utility>

namespace kvasir::eval {
namespace {

// Runs a request that generates nothing.
Result<RequestRun> run_prompt(Engine& engine, Request request, const KeepGoing& keep_going) {
  request.sampling.max_tokens = 0;
  request.use_prefix_cache = false;
  return run_request(engine, std::move(request), keep_going);
}

}  // namespace

Result<PromptScore> score_prompt(Engine& engine, std::vector<TokenId> prompt, const KvParams& kv,
                                 LogitsObserver observer, const KeepGoing& keep_going, std::string adapter) {
  Request request;
  request.adapter = std::move(adapter);
  request.kv = kv;
  request.kv.is_share_of_present = true;  // every position is scored, not the last one alone
  request.prompt_token_ids = std::move(prompt);
  request.logits_observer = std::move(observer);
  request.sampling.prompt_logprobs = 0;
  KVASIR_TRY(const RequestRun run, run_prompt(engine, std::move(request), keep_going));
  PromptScore score;
  score.kv_bytes_share = run.usage.kv_bytes_share_mean;
  score.kv_bytes_share_peak = run.usage.kv_bytes_share_peak;
  score.logprobs.reserve(run.prompt_logprobs.size());
  for (const PositionLogprobs& position : run.prompt_logprobs) {
    score.logprobs.push_back(position.chosen.token == kNoToken ? 0.0f : position.chosen.logprob);
  }
  return score;
}

Status observe_logits(Engine& engine, std::vector<TokenId> prompt, LogitsObserver observer,
                      const KeepGoing& keep_going) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.logits_observer = std::move(observer);
  KVASIR_CHECKED(run_prompt(engine, std::move(request), keep_going));
  return {};
}

}  // namespace kvasir::eval
