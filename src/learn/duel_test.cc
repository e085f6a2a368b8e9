#include "learn/duel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace kvasir::learn::duel_test {
namespace {

constexpr double kEvidenceToWin = 40.0;  // as the first challenger of a champion needs

ShadowCost cost_of(double first, double second) { return {.of_plan = {first, second}}; }

// Sequences whose costs differ a hundredfold; the challenger's are so many times the champion's, more or less.
struct Stream {
  std::mt19937_64 random;
  double ratio = 1.0, spread = 0.1;

  DuelVerdict next(Duel& duel) {
    const double champion = std::exp(std::normal_distribution(0.0, 1.5)(random));
    const double noise = std::exp(spread * std::normal_distribution(0.0, 1.0)(random));
    return duel.note(cost_of(champion, 2.0 * champion), cost_of(champion * ratio * noise, 2.0 * champion * ratio * noise));
  }
};

// The verdict, and after how many sequences.
DuelVerdict verdict_of(Stream stream, std::int64_t& count) {
  Duel duel(kEvidenceToWin);
  DuelVerdict verdict = DuelVerdict::kUndecided;
  while (verdict == DuelVerdict::kUndecided) verdict = stream.next(duel);
  count = duel.count();
  return verdict;
}

int wins_of(double ratio, int num_duels) {
  int num_won = 0;
  for (int i = 0; i < num_duels; ++i) {
    std::int64_t count = 0;
    num_won += verdict_of({.random = std::mt19937_64(static_cast<std::uint64_t>(i)), .ratio = ratio}, count) == DuelVerdict::kChallenger ? 1 : 0;
    EXPECT_GE(count, Duel::kLeastSequences);
    EXPECT_LE(count, Duel::kMostSequences);
  }
  return num_won;
}

TEST(DuelOfForecasts, AWorseChallengerNeverWins) { EXPECT_EQ(wins_of(1.05, 200), 0); }

TEST(DuelOfForecasts, AnEqualChallengerNeverWins) { EXPECT_EQ(wins_of(1.0, 200), 0); }

TEST(DuelOfForecasts, OneThatIsJustFivePercentBetterSeldomWins) {
  const int num_won = wins_of(0.95, 1000);  // on the edge of what must be shown, with a chance of one in kEvidenceToWin at most
  EXPECT_LE(num_won, 40);
}

TEST(DuelOfForecasts, OneThatIsTenPercentBetterWins) { EXPECT_GE(wins_of(0.9, 200), 190); }

TEST(DuelOfForecasts, OneLuckySequenceDecidesNothing) {
  Duel duel(kEvidenceToWin);
  DuelVerdict verdict = duel.note(cost_of(1000.0, 1000.0), cost_of(1e-6, 1e-6));
  while (verdict == DuelVerdict::kUndecided) verdict = duel.note(cost_of(1.0, 1.0), cost_of(1.0, 1.0));
  EXPECT_EQ(verdict, DuelVerdict::kChampion);
  EXPECT_EQ(duel.count(), Duel::kLeastSequences);
  EXPECT_LT(duel.log10_evidence(), 0.0);
  EXPECT_LT(duel.ratio(), 0.5) << "although the sums of costs say otherwise";
}

TEST(DuelOfForecasts, CheaperPlansThatDropMoreAnswersDoNotWin) {
  Duel duel(kEvidenceToWin);
  DuelVerdict verdict = DuelVerdict::kUndecided;
  while (verdict == DuelVerdict::kUndecided) {
    verdict = duel.note({.of_plan = {1.0, 1.0}, .asked_for = 100.0, .asked_for_dropped = 1.0},
                        {.of_plan = {0.8, 0.8}, .asked_for = 100.0, .asked_for_dropped = 1.2});
  }
  EXPECT_EQ(verdict, DuelVerdict::kChampion);
  EXPECT_EQ(duel.count(), Duel::kMostSequences);
  EXPECT_GT(duel.log10_evidence(), 2.0);
  EXPECT_NEAR(duel.asked_ratio(), 1.2, 1e-9);
  EXPECT_NEAR(duel.asked_dropped_share(), 0.012, 1e-9);
}

TEST(DuelOfForecasts, AHandfulOfAnswersThatAreDroppedDecidesNothing) {
  for (const double dropped : {0.09, 0.11}) {
    Duel duel(kEvidenceToWin);
    DuelVerdict verdict = DuelVerdict::kUndecided;
    while (verdict == DuelVerdict::kUndecided) {
      verdict = duel.note({.of_plan = {1.0, 1.0}, .asked_for = 100.0}, {.of_plan = {0.8, 0.8}, .asked_for = 100.0, .asked_for_dropped = dropped});
    }
    EXPECT_EQ(verdict, dropped < 0.1 ? DuelVerdict::kChallenger : DuelVerdict::kChampion) << dropped;
  }
}

TEST(DuelOfForecasts, ACostThatIsNoNumberIsNoEvidence) {
  Duel duel(kEvidenceToWin);
  for (const double cost : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (int i = 0; i < 60; ++i) EXPECT_NE(duel.note(cost_of(1.0, 1.0), cost_of(cost, cost)), DuelVerdict::kChallenger) << cost;
  }
}

TEST(LossWatchOfAChampion, SeesThatDecayedMassIsBetterAndNothingElse) {
  for (const double ratio : {0.9, 1.0}) {
    LossWatch watch;
    for (int i = 0; i < 1000; ++i) watch.note(cost_of(ratio, ratio), cost_of(1.0, 1.0));
    EXPECT_FALSE(watch.has_lost()) << ratio;
  }
  LossWatch watch;
  for (int i = 0; i < 199; ++i) watch.note(cost_of(1.2, 1.2), cost_of(1.0, 1.0));
  EXPECT_FALSE(watch.has_lost()) << "too few";
  watch.note(cost_of(1.2, 1.2), cost_of(1.0, 1.0));
  EXPECT_TRUE(watch.has_lost());
}

}  // namespace
}  // namespace kvasir::learn::duel_test
