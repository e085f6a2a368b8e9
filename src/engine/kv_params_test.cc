#include "engine/kv_params.h"

#include <gtest/gtest.h>

namespace kvasir::kv_params_test {
namespace {

TEST(KvBudget, IsAShareAPercentageOrASize) {
  KvParams kv;
  ASSERT_TRUE(set_kv_budget("0.3", kv));
  EXPECT_EQ(kv.budget, 0.3);
  ASSERT_TRUE(set_kv_budget("45%", kv));
  EXPECT_EQ(kv.budget, 0.45);
  ASSERT_TRUE(set_kv_budget("1", kv));
  EXPECT_EQ(kv.budget, 1.0);
  EXPECT_EQ(kv.budget_bytes, 0);
  ASSERT_TRUE(set_kv_budget("20MiB", kv));
  EXPECT_EQ(kv.budget_bytes, 20 << 20);
  ASSERT_TRUE(set_kv_budget("65536", kv));
  EXPECT_EQ(kv.budget_bytes, 65536);
}

// A share that was mistyped is no budget of one byte.
TEST(KvBudget, RefusesWhatIsNeither) {
  for (const char* text : {"", "0", "-1", "1.5", "30", "130%", "0%", "nan", "inf", "half", "1KiB", "0.3 "}) {
    SCOPED_TRACE(text);
    KvParams kv;
    const Status status = set_kv_budget(text, kv);
    ASSERT_FALSE(status);
    EXPECT_TRUE(
        status.error().message.starts_with("must be a share above 0 and at most 1, a percentage or a size"));
    EXPECT_EQ(kv.budget, 1.0);
    EXPECT_EQ(kv.budget_bytes, 0);
  }
}

// Two layers' groups; the windowed one keeps what it keeps whatever the budget is.
ModelInfo model() {
  return {.kv_groups = {{.bytes_per_token = 1000}, {.bytes_per_token = 500, .window_tokens = 512}}, .max_model_len_tokens = 2000};
}

Request request_of(KvParams kv, std::size_t prompt_tokens, std::optional<std::int32_t> max_tokens) {
  Request request;
  request.prompt_token_ids.resize(prompt_tokens);
  request.sampling.max_tokens = max_tokens;
  request.kv = std::move(kv);
  return request;
}

TEST(KvBudget, OneInBytesIsAShareOfTheLongestAnswer) {
  EXPECT_EQ(budget_share(request_of({.budget = 0.2}, 100, 50), model()), 0.2);
  EXPECT_EQ(budget_share(request_of({.budget_bytes = 15'000}, 100, 50), model()), 0.1);
  EXPECT_EQ(budget_share(request_of({.budget_bytes = 15'000}, 100, {}), model()), 0.0075);
  EXPECT_EQ(budget_share(request_of({.budget = 0.05, .budget_bytes = 15'000}, 100, 50), model()), 0.05);
  EXPECT_EQ(budget_share(request_of({.budget_bytes = 1 << 30}, 100, 50), model()), 1.0);
}

TEST(KvPromise, IsOfAPolicyAQualityAndAStepOfBudgets) {
  const KvParams gate = {.policy = "ladder", .budget = 0.2};
  EXPECT_EQ(promise_of(gate, 0.2), (KvPromise{.policy = "ladder", .quality = KvQuality::kGate, .budget = 0.2}));
  EXPECT_EQ(promise_of(gate, 0.16).budget, 0.2);
  EXPECT_EQ(promise_of(gate, 0.001).budget, 0.05);
  EXPECT_EQ(promise_of(gate, 0.9).budget, 1.0);
  EXPECT_EQ(promise_of({.policy = "ladder"}, 1.0), KvPromise()) << "nothing acts on it";
  EXPECT_EQ(promise_of({.policy = "ladder", .budget = 0.2, .quality = KvQuality::kExact}, 0.2), KvPromise());
  EXPECT_EQ(promise_of({.policy = "kivi-4", .budget = 0.2}, 0.2).budget, 1.0) << "it has its own bytes";
  EXPECT_EQ(promise_of({.policy = "ladder", .budget = 0.2, .max_lost_share = 0.5}, 0.2).quality, KvQuality::kBestEffort);
  EXPECT_EQ(promise_of({.policy = "ladder", .budget = 0.2, .max_lost_share = 0.01}, 0.2).quality, KvQuality::kGate);
}

TEST(KvPromise, ThatIsBrokenCoversSmallerBudgets) {
  const KvPromise broken = {.policy = "ladder", .quality = KvQuality::kGate, .budget = 0.15};
  EXPECT_TRUE(covers(broken, broken));
  EXPECT_TRUE(covers(broken, {.policy = "ladder", .quality = KvQuality::kGate, .budget = 0.1}));
  EXPECT_FALSE(covers(broken, {.policy = "ladder", .quality = KvQuality::kGate, .budget = 0.2}));
  EXPECT_FALSE(covers(broken, {.policy = "ladder", .quality = KvQuality::kBestEffort, .budget = 0.1}));
  EXPECT_FALSE(covers(broken, {.policy = "snapkv", .quality = KvQuality::kGate, .budget = 0.1}));
}

}  // namespace
}  // namespace kvasir::kv_params_test
