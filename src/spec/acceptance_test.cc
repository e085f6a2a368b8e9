#include "spec/acceptance.h"

#include <gtest/gtest.h>

namespace kvasir::spec::acceptance_test {
namespace {

TEST(Acceptance, LongerMatchesAreWorthMoreAtFirst) {
  const Acceptance fresh;
  for (int length = 2; length < 40; ++length) {
    EXPECT_LE(fresh.estimate(Grade::of_match(length)), fresh.estimate(Grade::of_match(length + 1)));
  }
}

TEST(Acceptance, AChanceIsBelievedAtFirst) {
  const Acceptance fresh;
  for (const double chance : {0.0, 0.3, 0.99, 1.0}) EXPECT_DOUBLE_EQ(fresh.estimate(Grade::of_chance(chance)), chance);
}

TEST(Acceptance, FollowsWhatItSees) {
  Acceptance seen;
  for (int i = 0; i < 200; ++i) seen.observe(Grade::of_match(4), false);
  EXPECT_LT(seen.estimate(Grade::of_match(4)), 0.05);
  EXPECT_GT(seen.estimate(Grade::of_match(16)), 0.5) << "of other lengths nothing was seen";
  for (int i = 0; i < 1000; ++i) seen.observe(Grade::of_match(4), true);
  EXPECT_GT(seen.estimate(Grade::of_match(4)), 0.9) << "the old counts have faded";
}

TEST(Acceptance, BeginsWithWhatOthersSaw) {
  Acceptance others;
  for (int i = 0; i < 500; ++i) others.observe(Grade::of_match(3), true);
  const Acceptance own(&others);
  EXPECT_GT(own.estimate(Grade::of_match(3)), 0.9);
}

}  // namespace
}  // namespace kvasir::spec::acceptance_test
