#include "admission/ttft_estimate.h"

#include <gtest/gtest.h>

#include "admission/ttft_target.h"

namespace kvasir::admission::ttft_estimate_test {
namespace {

constexpr WaitingConfig kByValue{.policy = WaitingPolicy::kSloValue};

PromptWork tokens(std::int64_t count) { return {.num_tokens = count}; }

LoadSnapshot full_house() {
  LoadSnapshot load;
  load.busy_seats_ms = {400.0, 100.0, 300.0};
  load.hold_ms = 3000.0;
  load.num_holding = 3;
  load.rates.ms_per_prompt_token = 2.0;
  return load;
}

TEST(TtftEstimate, WaitsForTheSeatThatIsFreeInItsTurn) {
  LoadSnapshot load = full_house();
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 100.0);
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).prefill_ms, 20.0);
  load.group("", 0, 0.0).num_sequences = 2;
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 400.0);
  load.groups[0].num_sequences = 3;  // the three that end first are taken; then the first of those ends
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 1100.0);
}

TEST(TtftEstimate, WaitsForNoSeatWhereOneIsFree) {
  LoadSnapshot load = full_house();
  load.num_free_seats = 2;
  load.group("", 0, 0.0).num_sequences = 1;
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 0.0);
  load.groups[0].num_sequences = 2;
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 100.0);
}

// An idle server knows nobody who keeps a seat: those that come within one step count by what answers usually
// are.
TEST(TtftEstimate, ABurstFindsTheSeatsTaken) {
  LoadSnapshot load;
  load.num_free_seats = 2;
  load.usual_answer_tokens = 200;
  load.full_step_ms = 10.0;
  WaitingGroup& waiting = load.group("", 0, 0.0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 0.0);
    load.add_holding(1, 1000);
    ++waiting.num_sequences;
  }
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 2000.0);
  load.add_holding(2, 50);  // of short answers
  waiting.num_sequences += 2;
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 2 * 1250.0);
}

TEST(TtftEstimate, WaitsForThePromptsBeforeIt) {
  LoadSnapshot load = full_house();
  load.group("", 0, 0.0).running_prompts.num_tokens = 300;
  load.groups[0].prompts.num_tokens = 200;
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 1000.0);
}

TEST(TtftEstimate, LongPromptsTakeLongerThanTheirTokens) {
  LoadSnapshot load = full_house();
  load.rates.ms_per_prompt_key = 0.01;
  PromptWork prompt;
  prompt.add(100, 10);  // behind 100 that are cached: 10 * 100 + 55 keys
  EXPECT_DOUBLE_EQ(estimate_ttft(load, kByValue, "", 0, prompt).prefill_ms, 2.0 * 10 + 0.01 * 1055);
  load.group("", 0, 0.0).prompts.add(0, 200);
  EXPECT_DOUBLE_EQ(estimate_ttft(load, kByValue, "", 0, prompt).wait_ms, 2.0 * 200 + 0.01 * 20'100);
}

TEST(TtftEstimate, APromptThatHasBegunIsBeforeWhoeverIsNotAheadOfItsTenant) {
  LoadSnapshot load = full_house();
  load.group("greedy", 0, 100'000.0).running_prompts.num_tokens = 300;
  EXPECT_EQ(estimate_ttft(load, kByValue, "new", 0, tokens(10)).wait_ms, 100.0);
  EXPECT_EQ(estimate_ttft(load, kByValue, "greedy", 0, tokens(10)).wait_ms, 600.0);
  EXPECT_EQ(estimate_ttft(load, {.policy = WaitingPolicy::kFifo}, "new", 0, tokens(10)).wait_ms, 600.0);
  EXPECT_EQ(estimate_ttft(load, {.policy = WaitingPolicy::kPriority}, "new", -1, tokens(10)).wait_ms, 600.0);
}

TEST(TtftEstimate, SeatsKeptForOthersAreNotFree) {
  LoadSnapshot load = full_house();
  load.num_free_seats = 2;
  load.seats.num_reserved = 2;
  load.seats.share = 3;
  load.group("greedy", 0, 0.0).num_running = 3;
  load.group("modest", 0, 0.0).num_running = 2;
  EXPECT_EQ(estimate_ttft(load, kByValue, "greedy", 0, tokens(10)).wait_ms, 100.0);
  EXPECT_EQ(estimate_ttft(load, kByValue, "modest", 0, tokens(10)).wait_ms, 0.0);
  EXPECT_EQ(estimate_ttft(load, kByValue, "new", 0, tokens(10)).wait_ms, 0.0);
}

TEST(TtftEstimate, OthersTakeTheirTurnsBetweenTheTenantsOwn) {
  LoadSnapshot load = full_house();
  load.num_tenants = 2;
  load.group("one", 0, 50'000.0).prompts.num_tokens = 10'000;
  load.group("two", 0, 50'000.0).prompts.num_tokens = 100'000;
  // Its own 10,000 and as many of the other's, and half a turn; of the other's at most what there is.
  const double half_a_turn = kByValue.tenant_quantum_tokens / 2;
  EXPECT_EQ(estimate_ttft(load, kByValue, "one", 0, tokens(10)).wait_ms, 2.0 * (20'000 + half_a_turn));
  EXPECT_EQ(estimate_ttft(load, kByValue, "two", 0, tokens(10)).wait_ms, 2.0 * 200'000);
  load.groups[0].recent_share = 0.25;  // an equal part all the same
  load.groups[1].recent_share = 0.75;
  EXPECT_EQ(estimate_ttft(load, kByValue, "one", 0, tokens(10)).wait_ms, 2.0 * (20'000 + half_a_turn));
  EXPECT_DOUBLE_EQ(estimate_ttft(load, kByValue, "two", 0, tokens(10)).wait_ms, 2.0 * 100'000 / 0.75);
}

TEST(TtftEstimate, AClassBelowZeroIsBeforeItsTenantsOthersOnly) {
  LoadSnapshot load = full_house();
  load.num_tenants = 2;
  load.group("urgent", -1, 50'000.0).prompts.num_tokens = 100'000;
  load.group("plain", 0, 50'000.0).prompts.num_tokens = 10'000;
  const double half_a_turn = kByValue.tenant_quantum_tokens / 2;
  EXPECT_EQ(estimate_ttft(load, kByValue, "plain", 0, tokens(10)).wait_ms, 2.0 * (20'000 + half_a_turn));
  EXPECT_EQ(estimate_ttft(load, kByValue, "plain", -2, tokens(10)).wait_ms, 2.0 * half_a_turn);
  EXPECT_EQ(estimate_ttft(load, kByValue, "urgent", -2, tokens(10)).wait_ms, 2.0 * half_a_turn);
  EXPECT_EQ(estimate_ttft(load, kByValue, "urgent", -1, tokens(10)).wait_ms, 2.0 * 200'000);
}

TEST(TtftEstimate, WhoHasBeenServedLeastIsComputedWithoutABreak) {
  LoadSnapshot load = full_house();
  load.num_tenants = 2;
  load.group("greedy", 0, 100'000.0).prompts.num_tokens = 1000;
  WaitingGroup& modest = load.group("modest", 0, 90'000.0);
  modest.recent_share = 0.1;
  modest.prompts.num_tokens = 1000;
  EXPECT_EQ(estimate_ttft(load, kByValue, "modest", 0, tokens(10)).wait_ms, 2.0 * 1000);
  modest.prompts.num_tokens = 20'000;  // half of it; the rest takes turns
  EXPECT_EQ(estimate_ttft(load, kByValue, "modest", 0, tokens(10)).wait_ms, 2.0 * (10'000 + 2 * 10'000));
  load.group("least", 0, 80'000.0);  // takes turns with it from the first
  EXPECT_EQ(estimate_ttft(load, kByValue, "modest", 0, tokens(10)).wait_ms, 2.0 * 2 * 20'000);
}

TEST(TtftEstimate, WhoIsNotThereBeginsWithItsAccount) {
  LoadSnapshot load = full_house();
  load.group("greedy", 0, 100'000.0).num_sequences = 50;
  load.entry_tokens = 92'000.0;
  load.absent = {{.tenant = "greedy too", .served_tokens = 120'000.0}};
  EXPECT_EQ(estimate_ttft(load, kByValue, "new", 0, tokens(10)).wait_ms, 100.0) << "a credit ahead";
  EXPECT_GT(estimate_ttft(load, kByValue, "greedy too", 0, tokens(10)).wait_ms, 10'000.0);
}

TEST(TtftEstimate, OthersOfALowerClassOrServedMoreAreNotBefore) {
  LoadSnapshot load = full_house();
  load.group("batch", 1, 0.0).num_sequences = 50;
  load.group("greedy", 0, 100'000.0).num_sequences = 50;
  EXPECT_EQ(estimate_ttft(load, kByValue, "batch", 0, tokens(10)).wait_ms, 100.0);
  EXPECT_GT(estimate_ttft(load, kByValue, "greedy", 0, tokens(10)).wait_ms, 10'000.0);
  EXPECT_EQ(estimate_ttft(load, kByValue, "new", 0, tokens(10)).wait_ms, 100.0);
  EXPECT_GT(estimate_ttft(load, kByValue, "new", 2, tokens(10)).wait_ms, 10'000.0);
}

TEST(TtftEstimate, WhoHasBeenServedLessByMoreThanATurnIsOwed) {
  LoadSnapshot load = full_house();
  load.group("greedy", 0, 100'000.0).num_sequences = 50;
  load.group("equal", 0, 100'000.0 - kByValue.tenant_quantum_tokens).num_sequences = 1;
  load.entry_tokens = 92'000.0;
  EXPECT_TRUE(is_underserved(load, kByValue, "new"));
  EXPECT_FALSE(is_underserved(load, kByValue, "greedy"));
  EXPECT_FALSE(is_underserved(load, kByValue, "equal"));
  EXPECT_FALSE(is_underserved(load, {.policy = WaitingPolicy::kFifo}, "new"));
}

TEST(TtftEstimate, KnowsNothingBeforeTheFirstStep) {
  EXPECT_EQ(estimate_ttft({}, kByValue, "", 0, tokens(1000)).wait_ms, 0.0);
}

TEST(TtftEstimate, AnIdleServerRefusesNobodyAndASlowOneHasSlack) {
  EXPECT_LE(excess_ms({.wait_ms = 0.0, .prefill_ms = 60'000.0}, 2000.0, 1.0), 0.0);
  EXPECT_EQ(excess_ms({.wait_ms = 2100.0, .prefill_ms = 200.0}, 2000.0, 1.0), 300.0);
  EXPECT_EQ(excess_ms({.wait_ms = 8000.0, .prefill_ms = 8000.0, .typical_ms = 8000.0}, 2000.0, 1.0), 0.0);
  EXPECT_EQ(excess_ms({.wait_ms = 2000.0, .prefill_ms = 8000.0}, 2000.0, 1.0), 0.0);
  EXPECT_EQ(excess_ms({.wait_ms = 3000.0, .prefill_ms = 8000.0}, 2000.0, 1.0), 1000.0);
  EXPECT_EQ(excess_ms({.wait_ms = 2100.0, .prefill_ms = 200.0}, 2000.0, 0.5), 1300.0);
  EXPECT_EQ(excess_ms({.wait_ms = 5000.0, .prefill_ms = 8000.0}, 2000.0, 2.0), 3000.0);
  EXPECT_EQ(target_ms_of(2000.0, 0), 2000.0);
  EXPECT_EQ(target_ms_of(2000.0, 1), 60'000.0);
}

// Requests that score or embed run layer by layer beside the others, and take every other step.
TEST(TtftEstimate, PrefillOnlyPromptsHoldUpThoseLikeThem) {
  LoadSnapshot load = full_house();
  load.num_free_seats = 2;
  WaitingGroup& group = load.group("", 0, 0.0);
  group.running_prompts.num_tokens = 6000;
  group.running_prefill_only.num_tokens = 5900;
  group.prompts.num_tokens = 3000;
  group.prefill_only.num_tokens = 2950;
  const TtftEstimate other = estimate_ttft(load, kByValue, "", 0, tokens(10));
  EXPECT_EQ(other.wait_ms, 2 * 2.0 * (100 + 50));
  EXPECT_EQ(other.prefill_ms, 2 * 2.0 * 10);
  const TtftEstimate alike = estimate_ttft(load, kByValue, "", 0, tokens(10), /*is_prefill_only=*/true);
  EXPECT_EQ(alike.wait_ms, 2.0 * 9000);
  EXPECT_EQ(alike.prefill_ms, 2.0 * 10);
}

TEST(TtftEstimate, ShortPromptsDoNotWaitForTheRestOfALongOne) {
  LoadSnapshot load = full_house();
  load.num_free_seats = 2;
  WaitingGroup& group = load.group("", 0, 0.0);
  group.running_prompts.num_tokens = 9100;
  group.running_long = {tokens(6000), tokens(3000)};
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(10)).wait_ms, 2.0 * 100);
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(4000)).wait_ms, 2.0 * 3100);
  EXPECT_EQ(estimate_ttft(load, kByValue, "", 0, tokens(7000)).wait_ms, 2.0 * 9100);
  load.group("greedy", 0, 1500.0).num_running = 1;
  EXPECT_EQ(estimate_ttft(load, kByValue, "greedy", 0, tokens(10)).wait_ms, 2.0 * (100 + 1500))
      << "the other's turn is due until it has had as much";
}

}  // namespace
}  // namespace kvasir::admission::ttft_estimate_test
