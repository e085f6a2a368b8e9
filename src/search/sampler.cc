#include "search/sampler.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>

namespace kvasir::search {
namespace {

constexpr std::chrono::milliseconds kQuestionInterval{50};

struct Drawn {
  std::vector<Sample> samples;
  std::int64_t num_search_tokens = 0;  // of beams
  std::promise<Status> finished;
};

void take(Drawn& drawn, RequestOutput output) {
  Sample& sample = drawn.samples[static_cast<std::size_t>(output.index)];
  sample.token_ids.insert(sample.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
  sample.text += output.text;
  if (sample.first_likeliest.empty() && !output.logprobs.empty()) sample.first_likeliest = output.logprobs.front().top;
  for (const PositionLogprobs& position : output.logprobs) sample.logprob += position.chosen.logprob;
  drawn.num_search_tokens = output.usage.search_tokens;
  if (output.finish_reason) sample.is_finished = output.finish_reason == FinishReason::kStop;
  if (!output.request_finished) return;
  if (output.error) return drawn.finished.set_value(std::unexpected(*output.error));
  if (output.finish_reason == FinishReason::kCancelled) return drawn.finished.set_value(make_error(ErrorKind::kCancelled, "interrupted"));
  drawn.finished.set_value({});
}

}  // namespace

Result<std::vector<Sample>> Sampler::draw(const std::vector<TokenId>& prompt, const DrawOptions& options) {
  Request request;
  request.prompt_token_ids = prompt;
  request.sampling.n = options.count;
  request.sampling.temperature = options.temperature;
  request.sampling.max_tokens = options.max_tokens;
  request.sampling.seed = options.seed;
  request.sampling.stop = options.stop;
  request.sampling.include_stop_str_in_output = true;
  request.sampling.logprobs = options.num_likeliest;
  request.sampling.beam_width = options.num_beams;
  request.sampling.length_penalty = options.length_penalty;
  auto drawn = std::make_shared<Drawn>();
  drawn->samples.resize(static_cast<std::size_t>(options.count));
  std::future<Status> finished = drawn->finished.get_future();
  KVASIR_TRY(const RequestId id, engine_.submit(std::move(request), [drawn](RequestOutput output) { take(*drawn, std::move(output)); }));
  while (keep_going_ && finished.wait_for(kQuestionInterval) != std::future_status::ready) {
    if (keep_going_()) continue;
    engine_.cancel(id);
    break;
  }
  KVASIR_CHECKED(finished.get());
  if (options.num_beams > 0) {
    num_tokens_ += drawn->num_search_tokens;
  } else {
    for (const Sample& sample : drawn->samples) num_tokens_ += std::ssize(sample.token_ids);
  }
  return std::move(drawn->samples);
}

}  // namespace kvasir::search
