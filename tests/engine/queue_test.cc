// What becomes of requests that wait.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "generate.h"

namespace kvasir::testing {
namespace {

std::unique_ptr<Engine> one_at_a_time(std::int32_t max_queued_requests) {
  auto engine =
      Engine::load({.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf",
                    .num_threads = 1,
                    .max_num_seqs = 1,
                    .max_queued_requests = max_queued_requests});
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

TEST(Queue, EndsARequestThatDoesNotStartInTime) {
  const auto engine = one_at_a_time(8);
  ASSERT_NE(engine, nullptr);
  const Request running = greedy_request({1, 2, 3}, 1000);
  Request impatient = greedy_request({4, 5, 6}, 4);
  impatient.start_within_ms = 1;
  impatient.sampling.n = 2;
  const Request patient = greedy_request({4, 5, 6}, 4);
  const std::vector<Answer> answers = generate(*engine, {running, impatient, patient});
  EXPECT_EQ(answers[0].token_ids.size(), 1000u);
  EXPECT_EQ(answers[1].error, "queue: the request did not start within 1 ms");
  EXPECT_EQ(answers[1].token_ids.size(), 0u);
  EXPECT_EQ(answers[2].error, "");
  EXPECT_EQ(answers[2].token_ids.size(), 4u);
}

TEST(Queue, TakesRequestsTogetherOrNotAtAll) {
  const auto engine = one_at_a_time(2);
  ASSERT_NE(engine, nullptr);
  const Request request = greedy_request({1, 2, 3}, 2);
  for (const Answer& answer : generate(*engine, {request, request, request, request})) {
    EXPECT_EQ(answer.error, "queue: 0 requests are waiting or running and 4 came, the limit is 3");
  }
  for (const Answer& answer : generate(*engine, {request, request, request})) EXPECT_EQ(answer.error, "");
  EXPECT_EQ(engine->stats().num_requests_rejected, 4);
}

}  // namespace
}  // namespace kvasir::testing
