#include "engine/warm_up.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace kvasir {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int32_t kPromptTokens[] = {64, 16};  // longer ones would keep a large model from starting
constexpr std::int32_t kGeneratedTokens = 3;

sched::SequenceRequest prompt_of(std::int32_t num_tokens) {
  sched::SequenceRequest request;
  request.prompt_token_ids.assign(static_cast<std::size_t>(num_tokens), TokenId{0});
  request.use_prefix_cache = false;
  request.stop.max_tokens = kGeneratedTokens;
  return request;
}

void run_step(sched::Scheduler& scheduler, runtime::ModelRunner& runner) {
  SamplingParams greedy;
  greedy.temperature = 0.0f;
  const sched::SchedulerOutput& output = scheduler.schedule(Clock::now());
  const std::vector<runtime::SamplingTask> tasks(output.sequences.size(), {.params = &greedy, .allowed = sampling::AllowedTokens::all()});
  const std::span<runtime::SequenceResult> results = runner.run(output, tasks);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].error) scheduler.finish(output.sequences[i].id);
  }
  scheduler.update(runner.sampled(), Clock::now());
}

}  // namespace

admission::StepTimeModel warm_up(const sched::SchedulerConfig& config, kv::KvCacheManager& kv,
                                 runtime::ModelRunner& runner, std::int32_t max_model_len_tokens) {
  sched::Scheduler scheduler(config, kv);
  for (const std::int32_t num_tokens : kPromptTokens) {
    const std::int32_t num_fitting = std::min(num_tokens, max_model_len_tokens - kGeneratedTokens);
    if (num_fitting < 1 || !scheduler.add(prompt_of(num_fitting), Clock::now())) continue;
    while (scheduler.has_unfinished()) run_step(scheduler, runner);
  }
  return scheduler.step_times();
}

}  // namespace kvasir
