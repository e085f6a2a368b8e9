#include "eval/scoring.h"

#include <future>
#include <memory>
#include <utility>

namespace kvasir::eval {
namespace {

// Submits a request that generates nothing and waits for its end.
Result<std::vector<PositionLogprobs>> run_prompt(Engine& engine, Request request) {
  struct Outcome {
    std::vector<PositionLogprobs> logprobs;
    std::promise<Status> finished;
  };
  request.sampling.max_tokens = 0;
  request.use_prefix_cache = false;
  auto outcome = std::make_shared<Outcome>();
  std::future<Status> finished = outcome->finished.get_future();
  KVASIR_CHECKED(engine.submit(std::move(request), [outcome](RequestOutput output) {
    for (PositionLogprobs& entry : output.prompt_logprobs) outcome->logprobs.push_back(std::move(entry));
    if (!output.request_finished) return;
    outcome->finished.set_value(output.error ? Status(std::unexpected(*output.error)) : Status());
  }));
  KVASIR_CHECKED(finished.get());
  return std::move(outcome->logprobs);
}

}  // namespace

Result<std::vector<float>> score_prompt(Engine& engine, std::vector<TokenId> prompt) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.prompt_logprobs = 0;
  KVASIR_TRY(const auto positions, run_prompt(engine, std::move(request)));
  std::vector<float> logprobs;
  logprobs.reserve(positions.size());
  for (const PositionLogprobs& position : positions) {
    logprobs.push_back(position.chosen.token == kNoToken ? 0.0f : position.chosen.logprob);
  }
  return logprobs;
}

Status observe_logits(Engine& engine, std::vector<TokenId> prompt, LogitsObserver observer) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.logits_observer = std::move(observer);
  KVASIR_CHECKED(run_prompt(engine, std::move(request)));
  return {};
}

}  // namespace kvasir::eval
