#include "admission/ttft_slack.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace kvasir::admission::ttft_slack_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{};
constexpr TtftSlack::Arrival kFirst{.tenant = "a"};
constexpr TtftSlack::Arrival kNext{.tenant = "a", .has_backlog = true, .has_own_backlog = true};
// Behind the queue of another tenant.
constexpr TtftSlack::Arrival kBehind{.tenant = "b", .has_backlog = true};
constexpr TtftSlack::Arrival kUnderserved{.tenant = "b", .is_underserved = true, .has_backlog = true};
constexpr TtftSlack::Arrival kNextUnderserved{
    .tenant = "b", .is_underserved = true, .has_backlog = true, .has_own_backlog = true};

TEST(TtftSlack, LetsABurstInThatComesAtOnce) {
  TtftSlack slack;
  EXPECT_EQ(slack.targets(kFirst, kStart), 2.0);
  EXPECT_EQ(slack.targets(kNext, kStart + milliseconds(400)), 2.0);
  EXPECT_EQ(slack.targets(kNext, kStart + milliseconds(600)), 1.0) << "they keep coming";
  EXPECT_EQ(slack.targets(kFirst, kStart + milliseconds(700)), 2.0) << "it has caught up";
}

TEST(TtftSlack, HasLessWhileSomebodyIsRefused) {
  TtftSlack slack;
  slack.note_refusal("a", kStart);
  EXPECT_EQ(slack.targets(kFirst, kStart + milliseconds(100)), 0.5);
  EXPECT_EQ(slack.targets(kFirst, kStart + seconds(10)), 1.0) << "not calm yet";
  EXPECT_EQ(slack.targets(kFirst, kStart + seconds(100)), 2.0);
}

TEST(TtftSlack, IsThatOfItsOwnForAnUnderservedTenant) {
  TtftSlack slack;
  slack.targets(kFirst, kStart);
  slack.note_refusal("a", kStart + seconds(10));
  EXPECT_EQ(slack.targets(kBehind, kStart + milliseconds(10'100)), 0.5);
  EXPECT_EQ(slack.targets(kUnderserved, kStart + milliseconds(10'100)), 2.0);
  EXPECT_EQ(slack.targets(kNextUnderserved, kStart + milliseconds(10'500)), 2.0);
  EXPECT_EQ(slack.targets(kNextUnderserved, kStart + milliseconds(10'700)), 1.0) << "they keep coming";
  slack.note_refusal("b", kStart + milliseconds(10'700));
  EXPECT_EQ(slack.targets(kUnderserved, kStart + seconds(12)), 1.0) << "its own burst was too large";
}

TEST(TtftSlack, ForgetsTenantsThatAreAwayWhenThereAreMany) {
  TtftSlack slack;
  slack.note_refusal("b", kStart);
  for (int i = 0; i < 100; ++i) slack.note_refusal("tenant " + std::to_string(i), kStart + seconds(30));
  EXPECT_EQ(slack.targets(kUnderserved, kStart + seconds(59)), 1.0) << "a minute is not over";
  EXPECT_EQ(slack.targets(kUnderserved, kStart + seconds(61)), 2.0);
}

}  // namespace
}  // namespace kvasir::admission::ttft_slack_test
