#include "sched/stop_checker.h"

#include <gtest/gtest.h>

namespace kvasir::sched::stop_checker_test {
namespace {

const StopCriteria kCriteria{
    .eos_token_ids = {2, 3}, .stop_token_ids = {7}, .max_tokens = 5, .min_tokens = 2};

TEST(StopChecker, StopsAtEveryEndOfGenerationToken) {
  EXPECT_EQ(check_stop(kCriteria, 2, 3), FinishReason::kStop);
  EXPECT_EQ(check_stop(kCriteria, 3, 3), FinishReason::kStop);
}

TEST(StopChecker, StopsAtTheRequestsOwnTokens) {
  EXPECT_EQ(check_stop(kCriteria, 7, 2), FinishReason::kStop);
}

TEST(StopChecker, GoesOnOtherwise) { EXPECT_EQ(check_stop(kCriteria, 4, 4), std::nullopt); }

TEST(StopChecker, HoldsStopsOffUntilMinTokens) {
  EXPECT_EQ(check_stop(kCriteria, 2, 1), std::nullopt);
  EXPECT_EQ(check_stop(kCriteria, 7, 1), std::nullopt);
}

TEST(StopChecker, EndsAtMaxTokens) { EXPECT_EQ(check_stop(kCriteria, 4, 5), FinishReason::kLength); }

TEST(StopChecker, PrefersStopOverLength) { EXPECT_EQ(check_stop(kCriteria, 2, 5), FinishReason::kStop); }

}  // namespace
}  // namespace kvasir::sched::stop_checker_test
