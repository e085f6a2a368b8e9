#include "learn/forecast_learning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace kvasir::learn::forecast_learning_test {
namespace {

constexpr std::int32_t kHeadDim = 64, kBlocks = 40, kCells = 4;
constexpr FitOptions kShortFit = {.num_steps = 400, .num_rows_per_step = 128};
constexpr FitOptions kWarmFit = {.num_steps = 400, .num_rows_per_step = 128, .greatest_rate = 1e-3f};

kv::KvCacheConfig cache() { return {.groups = {{.num_blocks = kBlocks, .cells_per_block = kCells, .head_dim = kHeadDim}}}; }

// Blocks go on as they were, or in the shifted kind those are asked for whose keys are distinct and that were not read before.
class Traffic {
 public:
  Traffic(std::uint64_t seed, bool is_shifted) : random_(seed), is_shifted_(is_shifted) {}

  ShadowSequence next() {
    std::vector<float> scores, statistics, later, shares;
    for (std::int32_t cell = 0; cell < kCells; ++cell) {
      for (std::int32_t b = 0; b < kBlocks; ++b) {
        const float log_score = 1.5f * normal_(random_), distinctness = normal_(random_);
        const float noise = 0.3f * normal_(random_);
        scores.push_back(std::exp(log_score));
        statistics.push_back(distinctness);
        later.push_back(std::exp((is_shifted_ ? 1.5f * distinctness - 0.5f * log_score : log_score) + noise));
        shares.push_back(0.0f);
      }
    }
    return {{.num_blocks = kBlocks,
             .scores = {kv::DecayedMass::memory(), kCells, std::move(scores), std::move(statistics)},
             .later = std::move(later),
             .greatest_share = std::move(shares)}};
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  bool is_shifted_;
};

// Has learned on traffic of the usual kind.
kv::ForecastNetwork usual_champion() {
  const ShadowJudge judge(cache());
  Traffic traffic(77, false);
  std::vector<ForecastRow> rows;
  for (int i = 0; i < 100; ++i) judge.add_rows(traffic.next(), nullptr, rows);
  return fit_forecast(rows, kCells, {.num_steps = 2000, .num_rows_per_step = 256}, [](double) { return true; });
}

struct Course {
  std::int64_t promoted_after = 0, turned_off_after = 0;
};

Course run(ForecastLearning& learning, Traffic traffic, int num_sequences, double seconds_between = 60.0) {
  Course course;
  for (int i = 1; i <= num_sequences; ++i) {
    const LearningNews news = learning.add(traffic.next(), seconds_between * i);
    if (news == LearningNews::kPromoted && course.promoted_after == 0) course.promoted_after = i;
    if (news == LearningNews::kTurnedOff) course.turned_off_after = i;
    if (learning.wants_training()) learning.train([](double) { return true; });
  }
  return course;
}

TEST(LearningOfForecasts, PromotesOneThatHasLearnedTheShift) {
  const kv::ForecastNetwork champion = usual_champion();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ForecastLearning learning(cache(), {.network = champion}, {.seed = seed, .fit = kWarmFit});
    const Course course = run(learning, Traffic(seed, true), 500);
    EXPECT_GE(course.promoted_after, 300) << "a hundred to learn from, and two hundred duels";
    EXPECT_EQ(learning.champion().version, learning.num_promotions());
    EXPECT_LT(learning.champion().cost_ratio, 0.95);
    ASSERT_NE(learning.served(), nullptr);
    EXPECT_EQ(learning.served()->version, learning.champion().version);
  }
}

TEST(LearningOfForecasts, PromotesNobodyWithoutAShift) {
  const kv::ForecastNetwork champion = usual_champion();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ForecastLearning learning(cache(), {.network = champion}, {.seed = seed, .fit = kWarmFit});
    EXPECT_EQ(run(learning, Traffic(seed, false), 500).promoted_after, 0) << seed;
    EXPECT_GE(learning.num_challengers(), 2) << "it goes on trying";
  }
}

TEST(LearningOfForecasts, BeginsWithDecayedMassWhereNothingWasLearned) {
  ForecastLearning learning(cache(), {}, {.fit = kShortFit});
  EXPECT_EQ(learning.served(), nullptr);
  EXPECT_GT(run(learning, Traffic(3, true), 400).promoted_after, 0);
}

TEST(LearningOfForecasts, ChangesAtMostOnceAnHour) {
  ForecastLearning learning(cache(), {.network = usual_champion()}, {.fit = kWarmFit});
  EXPECT_GT(run(learning, Traffic(1, true), 400, 1.0).promoted_after, 0);
  run(learning, Traffic(2, false), 1200, 1.0);  // back again, within the hour
  EXPECT_EQ(learning.num_promotions(), 1);
  EXPECT_EQ(learning.state(), KvLearningState::kDuels) << "the winner waits";
}

TEST(LearningOfForecasts, TurnsItselfOffWhenDecayedMassIsBetter) {
  kv::ForecastNetwork bad = usual_champion();
  for (float& weight : bad.output_weights) weight = -weight;
  ForecastLearning learning(cache(), {.version = 3, .network = bad}, {.num_first_sequences = 1000, .fit = kWarmFit});
  EXPECT_EQ(run(learning, Traffic(1, false), 250).turned_off_after, Duel::kLeastSequences);
  EXPECT_EQ(learning.state(), KvLearningState::kOff);
  EXPECT_FALSE(learning.wants_training());
  EXPECT_EQ(learning.champion().version, 3);
}

TEST(LearningOfForecasts, MixesTheChanceThatCameWithTheFirstOnes) {
  const ShadowJudge judge(cache());
  kv::ForecastNetwork knows = usual_champion();
  knows.asked_weights = {};
  knows.asked_biases = {-3.0f, -1.0f, 0.0f, 2.0f};
  const kv::ServedForecast first = judge.served(knows, 0);
  ShadowSequence sequence = Traffic(5, false).next();
  sequence[0].greatest_share[0] = 0.5f;  // the first block of the first cell is asked for
  const auto asked_of = [&](const kv::ServedForecast* served) {
    std::vector<ForecastRow> rows;
    judge.add_rows(sequence, served, rows);
    EXPECT_EQ(std::ssize(rows), kCells * kBlocks);
    return rows;
  };
  const std::vector<ForecastRow> mixed = asked_of(&first);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    const double chance = 1.0 / (1.0 + std::exp(-knows.asked_biases[static_cast<std::size_t>(mixed[i].cell)]));
    EXPECT_NEAR(mixed[i].asked, 0.5 * chance + (i == 0 ? 0.5 : 0.0), 1e-6) << i;
  }
  EXPECT_EQ(asked_of(nullptr)[0].asked, 1.0f);
  EXPECT_EQ(asked_of(nullptr)[1].asked, 0.0f);
  sequence[0].greatest_share.clear();  // of long steps nobody can tell
  for (const ForecastRow& row : asked_of(&first)) EXPECT_NEAR(row.asked, 1.0 / (1.0 + std::exp(-knows.asked_biases[static_cast<std::size_t>(row.cell)])), 1e-6);
  EXPECT_EQ(asked_of(nullptr)[0].asked, 0.0f);
}

TEST(LearningOfForecasts, GivesATrainingUpThatIsStopped) {
  ForecastLearning learning(cache(), {}, {.num_first_sequences = 1, .fit = kShortFit});
  Traffic traffic(1, false);
  learning.add(traffic.next(), 0.0);
  ASSERT_TRUE(learning.wants_training());
  learning.train([](double done) { return done < 0.5; });
  EXPECT_EQ(learning.num_challengers(), 0);
  EXPECT_EQ(learning.state(), KvLearningState::kCollects);
}

TEST(ReservoirOfRows, KeepsEachItemWithTheSameChance) {
  constexpr int kItems = 1000, kKept = 100, kRuns = 300;
  std::vector<int> kept(kItems);
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    Reservoir<int> reservoir(kKept, seed);
    for (int i = 0; i < kItems; ++i) reservoir.add(i);
    EXPECT_EQ(reservoir.num_seen(), static_cast<std::uint64_t>(kItems));
    for (const int item : reservoir.items()) ++kept[static_cast<std::size_t>(item)];
  }
  for (int tenth = 0; tenth < 10; ++tenth) {  // 3000 of each tenth are expected, with a deviation of about 50
    int count = 0;
    for (int i = 0; i < kItems / 10; ++i) count += kept[static_cast<std::size_t>(tenth * kItems / 10 + i)];
    EXPECT_NEAR(count, kRuns * kKept / 10, 250) << tenth;
  }
}

}  // namespace
}  // namespace kvasir::learn::forecast_learning_test
