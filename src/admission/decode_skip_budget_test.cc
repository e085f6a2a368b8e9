#include "admission/decode_skip_budget.h"

#include <gtest/gtest.h>

namespace kvasir::admission::decode_skip_budget_test {
namespace {

TEST(DecodeSkipBudget, AreFiveOfAHundredAtMostAndNeverTwoInARow) {
  DecodeSkipBudget skipped;
  for (int i = 0; i < 1000; ++i) skipped.count(false);  // no more are saved up than may come together
  int num_skipped = 0;
  for (int i = 0; i < 100; ++i) {
    const bool skips = skipped.may_skip();
    num_skipped += skips ? 1 : 0;
    skipped.count(skips);
    EXPECT_EQ(skipped.are_due(), skips);
    EXPECT_FALSE(skips && skipped.may_skip());
  }
  EXPECT_EQ(num_skipped, 5);
}

}  // namespace
}  // namespace kvasir::admission::decode_skip_budget_test
