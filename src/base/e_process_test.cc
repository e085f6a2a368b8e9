#include "base/e_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace kvasir::e_process_test {
namespace {

constexpr double kPromise = 0.01, kBreach = 1000.0;

// A mean KL as answers have it: mostly small, at times several times the mean.
class Answers {
 public:
  Answers(std::uint64_t seed, double mean) : random_(seed), log_(std::log(mean) - 0.5, 1.0) {}
  double next() { return std::min(1.0, log_(random_)); }

 private:
  std::mt19937_64 random_;
  std::lognormal_distribution<double> log_;
};

TEST(EProcess, RaisesHardlyAFalseAlarmHoweverOftenOneLooks) {
  int num_false = 0;
  for (std::uint64_t stream = 0; stream < 10'000; ++stream) {
    Answers answers(stream, kPromise);  // just what is promised
    EProcess evidence(kPromise);
    bool is_breach = false;
    for (int i = 0; i < 1000 && !is_breach; ++i) {
      evidence.add(answers.next());
      is_breach = evidence.evidence() >= kBreach;
    }
    num_false += is_breach;
  }
  EXPECT_LE(num_false, 10);  // 0.1%
}

// The same where answers are 0 or 1, the widest spread there is.
TEST(EProcess, HoldsForTheWidestSpread) {
  std::mt19937_64 random(3);
  std::bernoulli_distribution is_one(kPromise);
  int num_false = 0;
  for (int stream = 0; stream < 10'000; ++stream) {
    EProcess evidence(kPromise);
    bool is_breach = false;
    for (int i = 0; i < 1000 && !is_breach; ++i) {
      evidence.add(is_one(random) ? 1.0 : 0.0);
      is_breach = evidence.evidence() >= kBreach;
    }
    num_false += is_breach;
  }
  EXPECT_LE(num_false, 10);
}

// Answers until a breach, behind so many good ones.
int delay(std::uint64_t seed, int num_good, double bad_mean) {
  Answers good(seed, 0.003), bad(seed + 1, bad_mean);
  EProcess evidence(kPromise);
  for (int i = 0; i < num_good; ++i) evidence.add(good.next());
  int num_bad = 0;
  for (; num_bad < 1000 && evidence.evidence() < kBreach; ++num_bad) evidence.add(bad.next());
  return num_bad;
}

TEST(EProcess, SeesAFaultEarlyAndBehindThousandsOfGoodAnswers) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_LE(delay(10 * seed, 0, 0.05), 100);
    EXPECT_LE(delay(10 * seed, 5000, 0.05), 150);
    EXPECT_LE(delay(10 * seed, 5000, 0.3), 40);
  }
}

TEST(EProcess, ANumberThatIsNoneIsNoEvidence) {
  EProcess evidence(kPromise);
  evidence.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(evidence.count(), 0);
  EXPECT_EQ(evidence.evidence(), 0.0);
}

}  // namespace
}  // namespace kvasir::e_process_test
