#include "eval/scoring.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>

namespace kvasir::eval {
namespace {

constexpr std::chrono::milliseconds kQuestionInterval{50};

// Submits a request that generates nothing and waits for its end.
struct PromptRun {
  std::vector<PositionLogprobs> logprobs;
  Usage usage;
};

Result<PromptRun> run_prompt(Engine& engine, Request request, const KeepGoing& keep_going) {
  struct Outcome {
    PromptRun run;
    std::promise<Status> finished;
  };
  const auto interrupted = [] { return make_error(ErrorKind::kCancelled, "interrupted"); };
  if (keep_going && !keep_going()) return interrupted();
  request.sampling.max_tokens = 0;
  request.use_prefix_cache = false;
  auto outcome = std::make_shared<Outcome>();
  std::future<Status> finished = outcome->finished.get_future();
  KVASIR_TRY(const RequestId id,
             engine.submit(std::move(request), [outcome, interrupted](RequestOutput output) {
               for (PositionLogprobs& entry : output.prompt_logprobs)
                 outcome->run.logprobs.push_back(std::move(entry));
               if (!output.request_finished) return;
               outcome->run.usage = output.usage;
               if (output.error) return outcome->finished.set_value(std::unexpected(*output.error));
               if (output.finish_reason == FinishReason::kCancelled)
                 return outcome->finished.set_value(interrupted());
               outcome->finished.set_value({});
             }));
  while (keep_going && finished.wait_for(kQuestionInterval) != std::future_status::ready) {
    if (keep_going()) continue;
    engine.cancel(id);
    break;
  }
  KVASIR_CHECKED(finished.get());
  return std::move(outcome->run);
}

}  // namespace

Result<PromptScore> score_prompt(Engine& engine, std::vector<TokenId> prompt, const KvParams& kv,
                                 const KeepGoing& keep_going) {
  Request request;
  request.kv = kv;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.prompt_logprobs = 0;
  KVASIR_TRY(const PromptRun run, run_prompt(engine, std::move(request), keep_going));
  PromptScore score;
  score.kv_bytes_share = run.usage.kv_bytes_share;
  score.logprobs.reserve(run.logprobs.size());
  for (const PositionLogprobs& position : run.logprobs) {
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
