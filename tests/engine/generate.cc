#include "generate.h"

#include <chrono>
#include <future>
#include <random>
#include <thread>
#include <utility>

namespace kvasir::testing {

Request greedy_request(std::vector<TokenId> prompt, std::int32_t max_tokens) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.temperature = 0.0f;
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

std::vector<Answer> generate(Engine& engine, std::vector<Request> requests) {
  std::vector<Answer> answers(requests.size());
  std::vector<std::promise<void>> done(requests.size());
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto sink = [&answer = answers[i], &promise = done[i]](RequestOutput output) {
      answer.token_ids.insert(answer.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
      answer.logprobs.insert(answer.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
      answer.usage = output.usage;
      if (output.attention_scores) answer.attention_scores = std::move(output.attention_scores->per_block);
      if (!output.prompt_logprobs.empty()) answer.prompt_logprobs = std::move(output.prompt_logprobs);
      if (!output.embedding.empty()) answer.embedding = std::move(output.embedding);
      if (output.finish_reason) answer.finish_reason = output.finish_reason;
      if (output.error) answer.error = output.error->message;
      if (output.request_finished) promise.set_value();
    };
    submissions.push_back({std::move(requests[i]), std::move(sink)});
  }
  if (const auto ids = engine.submit(std::move(submissions)); !ids) {
    for (Answer& answer : answers) answer.error = ids.error().message;
    return answers;
  }
  for (auto& promise : done) promise.get_future().wait();
  return answers;
}

EngineStats stats_after(Engine& engine, std::int64_t num_requests) {
  EngineStats stats = engine.stats();
  while (stats.num_requests_finished < num_requests) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stats = engine.stats();
  }
  return stats;
}

std::vector<std::vector<TokenId>> random_prompts(std::int32_t count, std::int32_t min_tokens,
                                                 std::int32_t max_tokens, std::int32_t vocab_size,
                                                 std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<TokenId>> prompts(static_cast<std::size_t>(count));
  for (auto& prompt : prompts) {
    const auto range = static_cast<std::uint32_t>(max_tokens - min_tokens + 1);
    prompt.resize(static_cast<std::size_t>(min_tokens) + random() % range);
    for (TokenId& token : prompt)
      token = static_cast<TokenId>(random() % static_cast<std::uint32_t>(vocab_size));
  }
  return prompts;
}

}  // namespace kvasir::testing
