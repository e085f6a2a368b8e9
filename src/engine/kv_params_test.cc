#include "engine/kv_params.h"

#include <gtest/gtest.h>

namespace kvasir::kv_params_test {
namespace {

TEST(KvBudget, IsAShareAPercentageOrASize) {
  KvParams kv;
  ASSERT_TRUE(set_kv_budget("0.3", kv));
  EXPECT_EQ(kv.budget, 0.3);
  ASSERT_TRUE(set_kv_budget("45%", kv));
  EXPECT_EQ(kv.budget, 0.45);
  ASSERT_TRUE(set_kv_budget("1", kv));
  EXPECT_EQ(kv.budget, 1.0);
  EXPECT_EQ(kv.budget_bytes, 0);
  ASSERT_TRUE(set_kv_budget("20MiB", kv));
  EXPECT_EQ(kv.budget_bytes, 20 << 20);
  ASSERT_TRUE(set_kv_budget("65536", kv));
  EXPECT_EQ(kv.budget_bytes, 65536);
}

// A share that was mistyped is no budget of one byte.
TEST(KvBudget, RefusesWhatIsNeither) {
  for (const char* text : {"", "0", "-1", "1.5", "30", "130%", "0%", "nan", "inf", "half", "1KiB", "0.3 "}) {
    SCOPED_TRACE(text);
    KvParams kv;
    const Status status = set_kv_budget(text, kv);
    ASSERT_FALSE(status);
    EXPECT_TRUE(
        status.error().message.starts_with("must be a share above 0 and at most 1, a percentage or a size"));
    EXPECT_EQ(kv.budget, 1.0);
    EXPECT_EQ(kv.budget_bytes, 0);
  }
}

}  // namespace
}  // namespace kvasir::kv_params_test
