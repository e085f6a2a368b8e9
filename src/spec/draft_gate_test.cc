#include "spec/draft_gate.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace kvasir::spec::draft_gate_test {
namespace {

using Streams = std::vector<DraftGate::Survival>;

// Plain steps of 10 ms, so that times are known.
DraftGate ready_gate(std::int32_t num_streams) {
  DraftGate gate;
  for (int i = 0; i < 3; ++i) gate.observe(num_streams, 0, num_streams, 10.0);
  return gate;
}

std::int32_t total(std::span<const std::int32_t> chosen) {
  return std::accumulate(chosen.begin(), chosen.end(), 0);
}

TEST(DraftGate, ChoosesNothingBeforeTimesAreKnown) {
  DraftGate gate;
  EXPECT_EQ(total(gate.choose(Streams{{0.9, 0.8}})), 0);
}

TEST(DraftGate, SureGuessesRunAndVainOnesDoNot) {
  DraftGate gate = ready_gate(1);
  EXPECT_GE(total(gate.choose(Streams{{0.95, 0.9, 0.86, 0.82, 0.78, 0.74, 0.7}})), 5);
  EXPECT_EQ(total(gate.choose(Streams{{0.03, 0.001}})), 0);
  EXPECT_EQ(total(gate.choose(Streams{{}})), 0);
}

TEST(DraftGate, TheBetterStreamsGuessesGoFirst) {
  DraftGate gate = ready_gate(2);
  const auto chosen = gate.choose(Streams{{0.05, 0.01}, {0.95, 0.9, 0.85, 0.8}});
  EXPECT_EQ(chosen[0], 0);
  EXPECT_GE(chosen[1], 2);
}

TEST(DraftGate, WithManyStreamsAGuessHasToBeSurer) {
  DraftGate one = ready_gate(1), many = ready_gate(16);
  EXPECT_GT(total(one.choose(Streams{{0.5}})), 0);
  EXPECT_EQ(total(many.choose(Streams(16, {0.5}))), 0);
  EXPECT_EQ(total(many.choose(Streams(RowCosts::kMaxStreams + 1, {1.0}))), 0);
}

TEST(DraftGate, RunsAPlainStepNowAndThen) {
  DraftGate gate = ready_gate(1);
  int num_plain = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int32_t num_guesses = total(gate.choose(Streams{{0.9, 0.8}}));
    num_plain += num_guesses == 0 ? 1 : 0;
    gate.observe(1, num_guesses, 1 + num_guesses, num_guesses == 0 ? 10.0 : 11.0);
  }
  EXPECT_GE(num_plain, 3);
  EXPECT_LE(num_plain, 6);
}

TEST(DraftGate, SleepsWhenGuessesDoNotPayAndLongerEachTime) {
  DraftGate gate = ready_gate(1);
  std::vector<int> sleeps;
  int num_slept = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::int32_t num_guesses = total(gate.choose(Streams{{0.9, 0.8, 0.7}}));
    if (gate.is_asleep()) {
      ++num_slept;
    } else if (num_slept > 0) {
      sleeps.push_back(num_slept);
      num_slept = 0;
    }
    gate.observe(1, num_guesses, 1, num_guesses == 0 ? 10.0 : 10.5);  // none is right
  }
  ASSERT_GE(sleeps.size(), 2U);
  EXPECT_GT(sleeps[1], sleeps[0] + 100);
}

}  // namespace
}  // namespace kvasir::spec::draft_gate_test
