#include "spec/draft_gate.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

namespace kvasir::spec::draft_gate_test {
namespace {

std::vector<DraftGate::Stream> streams_of(std::vector<std::vector<double>> survivals, bool needs_passes = false) {
  std::vector<DraftGate::Stream> streams;
  for (std::vector<double>& survival : survivals) streams.push_back({std::move(survival), needs_passes});
  return streams;
}

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
  EXPECT_EQ(total(gate.choose(streams_of({{0.9, 0.8}}))), 0);
}

TEST(DraftGate, SureGuessesRunAndVainOnesDoNot) {
  DraftGate gate = ready_gate(1);
  EXPECT_GE(total(gate.choose(streams_of({{0.95, 0.9, 0.86, 0.82, 0.78, 0.74, 0.7}}))), 5);
  EXPECT_EQ(total(gate.choose(streams_of({{0.03, 0.001}}))), 0);
  EXPECT_EQ(total(gate.choose(streams_of({{}}))), 0);
}

TEST(DraftGate, TheBetterStreamsGuessesGoFirst) {
  DraftGate gate = ready_gate(2);
  const auto chosen = gate.choose(streams_of({{0.05, 0.01}, {0.95, 0.9, 0.85, 0.8}}));
  EXPECT_EQ(chosen[0], 0);
  EXPECT_GE(chosen[1], 2);
}

TEST(DraftGate, PassesOfAModelHaveTheirPrice) {
  const std::vector<std::vector<double>> likely = {{0.8, 0.64, 0.51, 0.41, 0.33, 0.26, 0.21}};
  DraftGate cheap = ready_gate(1), dear = ready_gate(1), too_dear = ready_gate(1);
  cheap.observe_passes(4, 2.0);
  dear.observe_passes(4, 8.0);
  too_dear.observe_passes(4, 40.0);
  EXPECT_GT(total(cheap.choose(streams_of(likely, true))), total(dear.choose(streams_of(likely, true))));
  EXPECT_GT(total(dear.choose(streams_of(likely, true))), 0);
  EXPECT_EQ(total(too_dear.choose(streams_of(likely, true))), 0);
  EXPECT_GT(total(too_dear.choose(streams_of(likely))), 0) << "the text costs no passes";
}

TEST(DraftGate, TheTimeOfAModelCountsWhenGuessesAreJudged) {
  DraftGate gate = ready_gate(1);
  bool has_slept = false;
  for (int i = 0; i < 200 && !has_slept; ++i) {
    const std::int32_t num_guesses = total(gate.choose(streams_of({{0.9}})));
    has_slept = gate.is_asleep();
    gate.observe(1, num_guesses, 1 + num_guesses, num_guesses == 0 ? 10.0 : 10.5, num_guesses == 0 ? 0.0 : 15.0);
  }
  EXPECT_TRUE(has_slept) << "two tokens for the time of two and a half steps";
}

TEST(DraftGate, WithManyStreamsAGuessHasToBeSurer) {
  DraftGate one = ready_gate(1), many = ready_gate(16);
  EXPECT_GT(total(one.choose(streams_of({{0.5}}))), 0);
  EXPECT_EQ(total(many.choose(streams_of(std::vector<std::vector<double>>(16, {0.5})))), 0);
  EXPECT_EQ(total(many.choose(streams_of(std::vector<std::vector<double>>(RowCosts::kMaxStreams + 1, {1.0})))), 0);
}

TEST(DraftGate, RunsAPlainStepNowAndThen) {
  DraftGate gate = ready_gate(1);
  int num_plain = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int32_t num_guesses = total(gate.choose(streams_of({{0.9, 0.8}})));
    num_plain += num_guesses == 0 ? 1 : 0;
    gate.observe(1, num_guesses, 1 + num_guesses, num_guesses == 0 ? 10.0 : 11.0);
  }
  EXPECT_GE(num_plain, 3);
  EXPECT_LE(num_plain, 6);
}

TEST(DraftGate, SleepsWhenGuessesDoNotPayAndLongerEachTime) {
  DraftGate gate = ready_gate(1);
  std::vector<int> sleeps;
  int num_slept = 0, num_guessed = 0;
  for (int i = 0; i < 8000; ++i) {
    const std::int32_t num_guesses = total(gate.choose(streams_of({{0.9, 0.8, 0.7}})));
    num_guessed += num_guesses > 0 ? 1 : 0;
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
  EXPECT_LT(num_guessed, 800);
}

TEST(DraftGate, DoubtfulGuessesThatDoNotPayDoNotTakeSureOnesWithThem) {
  DraftGate gate = ready_gate(1);
  const std::vector<DraftGate::Stream> doubtful = streams_of({{0.2}}), sure = streams_of({{0.95, 0.9, 0.86, 0.82}});
  int num_doubtful = 0, num_sure = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::int32_t num_guesses = total(gate.choose(doubtful));
    num_doubtful += num_guesses;
    gate.observe(1, num_guesses, 1, num_guesses == 0 ? 10.0 : 10.7);  // none is right
  }
  for (int i = 0; i < 300; ++i) {
    const std::int32_t num_guesses = total(gate.choose(sure));
    num_sure += num_guesses > 0 ? 1 : 0;
    gate.observe(1, num_guesses, 1 + num_guesses, num_guesses == 0 ? 10.0 : 12.0);
  }
  EXPECT_GT(num_doubtful, 60) << "or it had nothing to judge";
  EXPECT_LT(num_doubtful, 500);
  EXPECT_GT(num_sure, 250);
}

}  // namespace
}  // namespace kvasir::spec::draft_gate_test
