#include "spec/row_costs.h"

#include <gtest/gtest.h>

namespace kvasir::spec::row_costs_test {
namespace {

TEST(RowCosts, MoreRowsNeverCostLessAtFirst) {
  const RowCosts costs;
  for (int streams = 1; streams <= RowCosts::kMaxStreams; ++streams) {
    EXPECT_EQ(costs.ratio(streams, 0), 1.0);
    for (int guesses = 1; guesses < RowCosts::kMaxGuesses; ++guesses) {
      EXPECT_LE(costs.ratio(streams, guesses), costs.ratio(streams, guesses + 1))
          << streams << " " << guesses;
    }
  }
}

TEST(RowCosts, LearnsWhatRowsCostHere) {
  RowCosts costs;
  for (int i = 0; i < 4; ++i) costs.observe(1, 0, 10.0);
  EXPECT_DOUBLE_EQ(costs.base_ms(1), 10.0);
  for (int i = 0; i < 50; ++i) costs.observe(1, 3, 25.0);
  EXPECT_NEAR(costs.ratio(1, 3), 2.5, 0.3);
  EXPECT_GT(costs.ratio(1, 7), 2.0) << "what fewer cost, more cost";
}

TEST(RowCosts, KnowsNoTimeBeforeTwoStepsOfTheseStreams) {
  RowCosts costs;
  costs.observe(2, 0, 10.0);
  EXPECT_EQ(costs.base_ms(2), 0.0);
  costs.observe(2, 0, 10.0);
  EXPECT_GT(costs.base_ms(2), 0.0);
  costs.forget_bases();
  EXPECT_EQ(costs.base_ms(2), 0.0);
}

TEST(RowCosts, AStepThatWasHeldUpSaysLittle) {
  RowCosts costs;
  for (int i = 0; i < 8; ++i) costs.observe(1, 0, 10.0);
  costs.observe(1, 0, 500.0);
  EXPECT_LT(costs.base_ms(1), 12.0);
}

}  // namespace
}  // namespace kvasir::spec::row_costs_test
