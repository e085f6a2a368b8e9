#include "store/hub/backoff.h"

#include <gtest/gtest.h>

namespace kvasir::store::backoff_test {
namespace {

using std::chrono::milliseconds;

HttpResponse answer(std::int32_t status, std::map<std::string, std::string, std::less<>> headers = {}) {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  return response;
}

TEST(Backoff, OnlyPassingFailuresAreTriedAgain) {
  for (const std::int32_t status : {408, 429, 500, 502, 503, 504})
    EXPECT_TRUE(may_try_again(answer(status))) << status;
  for (const std::int32_t status : {200, 302, 400, 401, 403, 404, 416, 501})
    EXPECT_FALSE(may_try_again(answer(status)));
  HttpResponse broken = answer(0);
  broken.end = HttpResponse::End::kBroken;
  EXPECT_TRUE(may_try_again(broken));
  broken.is_permanent = true;
  EXPECT_FALSE(may_try_again(broken));
}

TEST(Backoff, TheServerSaysHowLong) {
  const auto now = std::chrono::system_clock::from_time_t(1792000000);  // Wed, 14 Oct 2026 17:46:40 GMT
  const auto wait = [&](const HttpResponse& response) { return requested_wait(response, now); };
  EXPECT_EQ(wait(answer(503)), milliseconds(0));
  EXPECT_EQ(wait(answer(503, {{"retry-after", "7"}})), milliseconds(7000));
  EXPECT_EQ(wait(answer(503, {{"retry-after", "Wed, 14 Oct 2026 17:46:50 GMT"}})), milliseconds(10000));
  EXPECT_EQ(wait(answer(503, {{"retry-after", "Wed, 14 Oct 2026 17:00:00 GMT"}})), milliseconds(0));
  EXPECT_EQ(wait(answer(503, {{"retry-after", "soon"}})), milliseconds(0));
  EXPECT_EQ(wait(answer(429, {{"ratelimit", "\"api\";r=0;t=55"}})), milliseconds(55000));
  EXPECT_EQ(wait(answer(503, {{"ratelimit", "\"api\";r=0;t=55"}})), milliseconds(0));
}

TEST(Backoff, GivesUpAfterSixFailuresInARow) {
  Backoff backoff([] { return true; });
  const HttpResponse busy = answer(503, {{"retry-after", "0"}});
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(backoff.wait(busy), Backoff::Verdict::kTryAgain);
    if (round == 0) backoff.reset();
  }
  EXPECT_EQ(backoff.wait(busy), Backoff::Verdict::kGiveUp);
}

TEST(Backoff, DoesNotWaitForHoursAndCanBeStopped) {
  Backoff backoff([] { return false; });
  EXPECT_EQ(backoff.wait(answer(429, {{"retry-after", "3600"}})), Backoff::Verdict::kGiveUp);
  EXPECT_EQ(backoff.wait(answer(429, {{"retry-after", "60"}})), Backoff::Verdict::kStopped);
}

}  // namespace
}  // namespace kvasir::store::backoff_test
