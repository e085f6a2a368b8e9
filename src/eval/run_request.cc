#include "eval/run_request.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>

namespace kvasir::eval {
namespace {

constexpr std::chrono::milliseconds kQuestionInterval{50};

}  // namespace

Result<RequestRun> run_request(Engine& engine, Request request, const KeepGoing& keep_going) {
  struct Outcome {
    RequestRun run;
    std::promise<Status> finished;
  };
  const auto interrupted = [] { return make_error(ErrorKind::kCancelled, "interrupted"); };
  if (keep_going && !keep_going()) return interrupted();
  auto outcome = std::make_shared<Outcome>();
  std::future<Status> finished = outcome->finished.get_future();
  KVASIR_TRY(const RequestId id,
             engine.submit(std::move(request), [outcome, interrupted](RequestOutput output) {
               RequestRun& run = outcome->run;
               const auto index = static_cast<std::size_t>(output.index);
               if (run.choices.size() <= index) run.choices.resize(index + 1);
               run.choices[index].insert(run.choices[index].end(), output.token_ids.begin(), output.token_ids.end());
               for (PositionLogprobs& entry : output.prompt_logprobs)
                 run.prompt_logprobs.push_back(std::move(entry));
               if (index == 0 && output.finish_reason) run.is_ended = *output.finish_reason == FinishReason::kStop;
               if (!output.request_finished) return;
               run.usage = output.usage;
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
  if (!outcome->run.choices.empty()) outcome->run.token_ids = outcome->run.choices.front();
  return std::move(outcome->run);
}

}  // namespace kvasir::eval
