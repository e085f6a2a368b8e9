// The fate of requests that wait.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "admission/ttft_admission.h"
#include "generate.h"

namespace kvasir::testing::queue_test {
namespace {

// Where KV for 2,048 tokens is.
std::unique_ptr<Engine> one_at_a_time(EngineConfig config) {
  config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf";
  config.num_threads = 1;
  config.max_num_seqs = 1;
  config.kv_cache_tokens = 2048;
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

TEST(Queue, EndsARequestThatDoesNotStartInTime) {
  const auto engine = one_at_a_time({});
  ASSERT_NE(engine, nullptr);
  const Request running = greedy_request({1, 2, 3}, 1000);
  Request impatient = greedy_request({4, 5, 6}, 4);
  impatient.start_within_ms = 1;
  impatient.sampling.n = 2;
  const Request patient = greedy_request({4, 5, 6}, 4);
  const std::vector<Answer> answers = generate(*engine, {running, impatient, patient});
  EXPECT_EQ(answers[0].token_ids.size(), 1000u);
  EXPECT_EQ(answers[1].error, "queue: the request did not start within 1 ms (--queue-timeout)");
  EXPECT_EQ(answers[1].token_ids.size(), 0u);
  EXPECT_EQ(answers[2].error, "");
  EXPECT_EQ(answers[2].token_ids.size(), 4u);
}

TEST(Queue, TakesRequestsTogetherOrNotAtAll) {
  const auto engine = one_at_a_time({.max_queued_requests = 2});
  ASSERT_NE(engine, nullptr);
  const Request request = greedy_request({1, 2, 3}, 2);
  for (const Answer& answer : generate(*engine, {request, request, request, request})) {
    EXPECT_EQ(answer.error, "queue: 4 requests came together, the limit is 3 (--max-queue)");
  }
  for (const Answer& answer : generate(*engine, {request, request, request})) EXPECT_EQ(answer.error, "");
  EXPECT_EQ(engine->stats().num_requests_rejected, 4);
  EXPECT_EQ(engine->stats().num_requests_beyond_queue, 4);
}

TEST(Queue, TakesWhatFitsOfThoseThatComeInPieces) {
  const auto engine = one_at_a_time({.max_queued_requests = 2});
  ASSERT_NE(engine, nullptr);
  std::vector<Submission> five;
  for (int i = 0; i < 5; ++i) five.push_back({greedy_request({1, 2, 3}, 1000), [](RequestOutput) {}});
  std::vector<RequestId> ids = engine->submit_some(five).value();
  EXPECT_EQ(ids.size(), 2u) << "one place is left to others";
  EXPECT_EQ(engine->submit_some(five).value().size(), 1u);
  const auto refused = engine->submit_some(five);
  ASSERT_FALSE(refused) << "not even the first of others";
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  five.front().request.is_admitted = true;
  EXPECT_EQ(engine->submit_some(five).value().size(), 1u) << "one of the same answer always comes in";
  EXPECT_EQ(engine->stats().num_requests_rejected, 5);
  engine->drain(0);
}

TEST(Queue, ADrainWaitsForTheRestOfAnAnswer) {
  const auto engine = one_at_a_time({});
  ASSERT_NE(engine, nullptr);
  Request request = greedy_request({1, 2, 3}, 2);
  std::shared_ptr<void> more = engine->keep_open();
  std::thread drain([&] { engine->drain(600'000); });
  const auto is_draining = [&] {
    const auto id = engine->submit(request, [](RequestOutput) {});
    return !id && id.error().message == "the server is shutting down";
  };
  while (!is_draining()) std::this_thread::yield();
  request.is_admitted = true;
  std::atomic<int> num_ended = 0;
  const auto count = [&](const RequestOutput& output) { num_ended += output.request_finished ? 1 : 0; };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(engine->submit(request, count)) << i;
    while (num_ended <= i) std::this_thread::yield();
  }
  more.reset();
  drain.join();
  engine->drain(0);
}

TEST(Queue, ADrainThatIsOverTakesNothingOfAnAnswerEither) {
  const auto engine = one_at_a_time({});
  ASSERT_NE(engine, nullptr);
  const std::shared_ptr<void> more = engine->keep_open();
  engine->drain(1);
  Request request = greedy_request({1, 2, 3}, 2);
  request.is_admitted = true;
  EXPECT_FALSE(engine->submit(request, [](RequestOutput) {}));
}

TEST(Queue, OneKeyThatHasFilledItKeepsNoOtherOut) {
  const auto engine = one_at_a_time({.max_queued_requests = 3});
  ASSERT_NE(engine, nullptr);
  std::latch has_been_filled(1);
  const auto waits = [&](RequestOutput) { has_been_filled.wait(); };  // so that none ends before
  const auto nobody = [](RequestOutput) {};
  Request request = greedy_request({1, 2, 3}, 400);
  request.tenant = "greedy";
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(engine->submit(request, waits)) << i;
  EXPECT_FALSE(engine->submit(request, nobody));
  request.tenant = "other";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(engine->submit(request, nobody)) << i;
  EXPECT_FALSE(engine->submit(request, nobody));
  has_been_filled.count_down();
  stats_after(*engine, 6);
  EXPECT_TRUE(engine->submit(request, nobody));
}

TEST(Queue, EndsWhatDoesNotStartInTheTimeThatTheEngineGives) {
  const auto engine = one_at_a_time({.queue_timeout_ms = 1});
  ASSERT_NE(engine, nullptr);
  const auto answers = generate(*engine, {greedy_request({1, 2, 3}, 1000), greedy_request({4, 5, 6}, 4)});
  EXPECT_EQ(answers[0].error, "");
  EXPECT_EQ(answers[1].error, "queue: the request did not start within 1 ms (--queue-timeout)");
  EXPECT_EQ(stats_after(*engine, 2).num_requests_expired, 1);
}

TEST(Queue, WhatWasSubmittedIsCountedFromThenOn) {
  const auto engine = one_at_a_time({});
  ASSERT_NE(engine, nullptr);
  Request request = greedy_request({1, 2, 3}, 1000);
  request.sampling.n = 16;
  ASSERT_TRUE(engine->submit(request, [](RequestOutput) {}));
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.num_running + stats.num_waiting, 0);
}

TEST(Queue, BoundsThePromptTokensThatWait) {
  const auto engine = one_at_a_time({.max_queued_kv_caches = 0.02});
  ASSERT_NE(engine, nullptr);
  const auto nobody = [](RequestOutput) {};
  ASSERT_TRUE(engine->submit(greedy_request({1, 2, 3}, 1000), nobody));
  Request request = greedy_request(std::vector<TokenId>(30, 7), 4);
  request.use_prefix_cache = false;
  EXPECT_TRUE(engine->submit(request, nobody));
  const auto refused = engine->submit(request, nobody);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_TRUE(refused.error().message.ends_with("and 30 came, the limit is 41 (--max-queue-kv)")) << refused.error().message;
}

TEST(Queue, CountsOfPromptsThatComeWhatIsNotCached) {
  const auto engine = one_at_a_time({.max_queued_kv_caches = 0.02});
  ASSERT_NE(engine, nullptr);
  const auto nobody = [](RequestOutput) {};
  ASSERT_TRUE(engine->submit(greedy_request({1, 2, 3}, 1000), nobody));
  const Request request = greedy_request(std::vector<TokenId>(33, 7), 4);
  EXPECT_TRUE(engine->submit(request, nobody));
  int num_entered = 0;  // with one token each
  while (num_entered < 100 && engine->submit(request, nobody)) ++num_entered;
  EXPECT_GE(num_entered, 5) << "41 are the limit, and the first one's three may be waiting yet";
  EXPECT_LE(num_entered, 8);
}

// The engine knows the time of a step before the first request. Forty such prompts are beyond anybody's
// patience, which is at most eight of 512 tokens, however fast the machine is.
TEST(Queue, RefusesThoseOfAFirstBurstWhoWouldBeLate) {
  const auto engine = one_at_a_time({.max_step_ms = 50, .ttft_target_ms = 1});
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->stats().num_prompt_tokens, 0);
  EXPECT_EQ(engine->stats().num_steps, 0);
  Request request = greedy_request(std::vector<TokenId>(500, 7), 100);
  request.use_prefix_cache = false;
  std::size_t num_refused = 0;
  for (int i = 0; i < 40; ++i) {
    const auto id = engine->submit(request, [](RequestOutput) {});
    if (id) continue;
    EXPECT_EQ(id.error().kind, ErrorKind::kUnavailable);
    ++num_refused;
  }
  EXPECT_GE(num_refused, 20u);
  EXPECT_EQ(engine->stats().num_requests_too_late, static_cast<std::int64_t>(num_refused));
}

// Their prompts are nothing, but each keeps its seat for an answer.
TEST(Queue, RefusesThoseOfAFirstBurstWhoWouldWaitForASeat) {
  admission::TtftAdmission gate(admission::WaitingConfig{.policy = WaitingPolicy::kSloValue}, 1000, false);
  admission::LoadSnapshot idle;
  idle.num_free_seats = 2;
  idle.usual_answer_tokens = 256;
  idle.full_step_ms = 10.0;
  gate.set_load(idle);
  const Request request = greedy_request({1, 2, 3}, 1000);
  const admission::TimePoint now{};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(gate.check(request, now)) << i;
    gate.admit(request);
  }
  const Status status = gate.check(request, now);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message.find("queue: the first token is expected after 2.6 s"), 0u)
      << status.error().message;
}

TEST(Queue, APromptOfAnyLengthMayWaitAlone) {
  const auto engine = one_at_a_time({.max_queued_kv_caches = 0.001});
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->submit(greedy_request(std::vector<TokenId>(30, 7), 4), [](RequestOutput) {}));
}

}  // namespace
}  // namespace kvasir::testing::queue_test
