#include "admission/ttft_slack.h"

#include <gtest/gtest.h>

#include <chrono>

namespace kvasir::admission::ttft_slack_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{};

TEST(TtftSlack, LetsABurstInThatComesAtOnce) {
  TtftSlack slack;
  EXPECT_EQ(slack.targets(false, false, kStart), 2.0);
  EXPECT_EQ(slack.targets(true, false, kStart + milliseconds(400)), 2.0);
  EXPECT_EQ(slack.targets(true, false, kStart + milliseconds(600)), 1.0) << "they keep coming";
  EXPECT_EQ(slack.targets(false, false, kStart + milliseconds(700)), 2.0) << "it has caught up";
}

TEST(TtftSlack, HasLessWhileSomebodyIsRefused) {
  TtftSlack slack;
  slack.note_refusal(kStart);
  EXPECT_EQ(slack.targets(false, false, kStart + milliseconds(100)), 0.5);
  EXPECT_EQ(slack.targets(false, false, kStart + seconds(10)), 1.0) << "not calm yet";
  EXPECT_EQ(slack.targets(false, false, kStart + seconds(100)), 2.0);
}

TEST(TtftSlack, IsNotCutForAnUnderservedTenant) {
  TtftSlack slack;
  slack.note_refusal(kStart);
  EXPECT_EQ(slack.targets(true, true, kStart + milliseconds(100)), 1.0);
  EXPECT_EQ(slack.targets(true, false, kStart + milliseconds(100)), 0.5);
}

}  // namespace
}  // namespace kvasir::admission::ttft_slack_test
