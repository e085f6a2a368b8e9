#include "admission/waiting_key.h"

#include <gtest/gtest.h>

namespace kvasir::admission::waiting_key_test {
namespace {

bool first(const WaitingConfig& config, const WaitingFacts& a, const WaitingFacts& b) {
  EXPECT_NE(key_of(config, a) < key_of(config, b), key_of(config, b) < key_of(config, a));
  return key_of(config, a) < key_of(config, b);
}

constexpr WaitingConfig kFifo{.policy = WaitingPolicy::kFifo};
constexpr WaitingConfig kByClass{.policy = WaitingPolicy::kPriority, .ageing_ms = 1000.0};
constexpr WaitingConfig kByValue{.policy = WaitingPolicy::kSloValue, .ageing_ms = 10'000.0};

TEST(WaitingOrder, FifoLooksAtNothingButArrival) {
  EXPECT_TRUE(first(kFifo, {.arrival = 1, .priority = 5}, {.arrival = 2, .priority = 0}));
}

TEST(WaitingOrder, AClassAgesByASecondASecond) {
  const WaitingFacts urgent{.arrival = 2, .priority = 0};
  EXPECT_TRUE(first(kByClass, urgent, {.arrival = 1, .priority = 1, .pending_ms = 999.0}));
  EXPECT_TRUE(first(kByClass, {.arrival = 1, .priority = 1, .pending_ms = 1000.0}, urgent));
  EXPECT_TRUE(first(kByClass, {.arrival = 3, .priority = 1, .pending_ms = 2000.0}, urgent));
}

TEST(WaitingOrder, WhoWasPreemptedGoesOnFirst) {
  EXPECT_TRUE(first(kByValue, {.arrival = 2, .has_started = true, .held_token_ms = 1e9},
                    {.arrival = 1, .held_token_ms = 1.0}));
}

TEST(WaitingOrder, TheLeastServedTenantIsNext) {
  WaitingFacts quiet{.arrival = 9, .held_token_ms = 1e9, .served_tokens = 100.0};
  const WaitingFacts greedy{.arrival = 1, .pending_ms = 500.0, .held_token_ms = 1.0, .served_tokens = 5000.0};
  EXPECT_TRUE(first(kByValue, quiet, greedy));
  quiet.served_tokens = 4900.0;  // about the same: value decides
  EXPECT_TRUE(first(kByValue, greedy, quiet));
}

TEST(WaitingOrder, ByValueAClassBelowZeroIsNotBeforeOthers) {
  const WaitingFacts plain{.arrival = 1, .held_token_ms = 1.0, .served_tokens = 5000.0};
  EXPECT_TRUE(first(kByValue, plain,
                    {.arrival = 2, .priority = -100, .held_token_ms = 1.0, .served_tokens = 5000.0}));
  WaitingFacts aged = plain;
  aged.arrival = 0;
  aged.priority = 1;
  EXPECT_TRUE(first(kByValue, plain, aged));
  aged.pending_ms = 20'000.0;  // two classes better: as class 0, and not before the least served
  EXPECT_TRUE(first(kByValue, aged, plain));
  aged.served_tokens = 9000.0;
  EXPECT_TRUE(first(kByValue, plain, aged));
}

TEST(WaitingOrder, ValueIsUrgencyAndCacheHitsOverWhatIsHeld) {
  const WaitingFacts plain{.arrival = 1, .pending_ms = 100.0, .target_ms = 2000.0, .held_token_ms = 1000.0};
  WaitingFacts other = plain;
  other.arrival = 2;
  EXPECT_TRUE(first(kByValue, plain, other));
  other.hit_ratio = 0.5;
  EXPECT_TRUE(first(kByValue, other, plain));
  other.held_token_ms = 2000.0;
  EXPECT_TRUE(first(kByValue, plain, other));
  other.pending_ms = 150.0;
  EXPECT_TRUE(first(kByValue, other, plain));
}

TEST(WaitingOrder, WhoMissesItsTargetAnywayIsBehindAsItCame) {
  const WaitingFacts late{
      .arrival = 1, .pending_ms = 1500.0, .target_ms = 2000.0, .prefill_ms = 501.0, .held_token_ms = 1.0};
  const WaitingFacts later{.arrival = 2, .pending_ms = 2400.0, .target_ms = 2000.0, .held_token_ms = 1.0};
  const WaitingFacts in_time{.arrival = 3, .pending_ms = 10.0, .target_ms = 2000.0, .held_token_ms = 1e6};
  EXPECT_TRUE(first(kByValue, in_time, late));
  EXPECT_TRUE(first(kByValue, late, later));
  WaitingFacts aged = late;
  aged.pending_ms = 3600.0;  // a quarter more than the target is over
  EXPECT_TRUE(first(kByValue, aged, in_time));
}

}  // namespace
}  // namespace kvasir::admission::waiting_key_test
