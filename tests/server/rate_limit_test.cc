// Keys with limits of their own: 429 says when to come again, and nobody else notices.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "http_client.h"
#include "running_server.h"
#include "server/auth/key_file.h"
#include "server/auth/rate_limiter.h"

namespace kvasir::server::rate_limit_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kPrompt[] = R"({"prompt":"abcd","max_tokens":4})";

Clock::time_point at_s(double s) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s)));
}

class Limiter : public testing::Test {
 protected:
  // 0, or after how many seconds to try again.
  int refused(const auth::Tenant& tenant, std::int64_t num_tokens, double s) {
    headers_.clear();
    const ApiStatus status = limiter_.admit(tenant, num_tokens, at_s(s), headers_);
    if (status) return 0;
    EXPECT_EQ(status.error().status, 429);
    return status.error().retry_after_s;
  }
  std::string header(const std::string& name) const {
    for (const http::Header& header : headers_) {
      if (header.name == name) return header.value;
    }
    return {};
  }

  auth::RateLimiter limiter_;
  std::vector<http::Header> headers_;
};

TEST_F(Limiter, LetsAMinutesRequestsPassAtOnceAndThenOneByOne) {
  const auth::Tenant ann{"ann", {.requests_per_minute = 6}};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(refused(ann, 1000, 0.0), 0) << i;
  EXPECT_EQ(refused(ann, 1000, 0.0), 10);
  EXPECT_EQ(refused(ann, 1000, 9.0), 1);
  EXPECT_EQ(refused(ann, 1000, 10.1), 0);
  EXPECT_EQ(refused(ann, 1000, 10.2), 10);
  EXPECT_EQ(refused({"bob", {.requests_per_minute = 6}}, 1000, 0.0), 0);
}

TEST_F(Limiter, KeepsWhatIsLeftWhenTheLimitsChange) {
  const auth::Tenant before{"ann", {.tokens_per_minute = 6000}}, after{"ann", {.tokens_per_minute = 600}};
  EXPECT_EQ(refused(before, 100, 0.0), 0);
  EXPECT_EQ(refused(after, 600, 0.0), 0);
  for (int i = 0; i < 10; ++i) {
    limiter_.charge(before, 1, at_s(0.0));  // a stream that began earlier
    EXPECT_GT(refused(after, 100, 0.0), 0);
  }
  EXPECT_EQ(refused(before, 100, 2.0), 1) << "10 a second have come in";
  EXPECT_EQ(refused(before, 100, 3.0), 0) << "and 100";
  const auth::Tenant unlimited{"ann", {}};
  EXPECT_EQ(refused(unlimited, 100'000, 3.0), 0);
  limiter_.charge(unlimited, 100'000, at_s(3.0));
  EXPECT_EQ(refused(after, 600, 63.0), 0) << "what was taken without a limit is not owed";
}

TEST_F(Limiter, KeysOfOneNameDoNotFillEachOthersBuckets) {
  const auth::Tenant by_tokens{"ann", {.tokens_per_minute = 100}},
      by_requests{"ann", {.requests_per_minute = 60}};
  EXPECT_EQ(refused(by_tokens, 100, 0.0), 0);
  for (const auth::Tenant& other : {by_requests, auth::Tenant{"ann", {}}}) {
    EXPECT_EQ(refused(other, 100, 0.0), 0);
    EXPECT_GT(refused(by_tokens, 100, 0.0), 0);
  }
}

TEST_F(Limiter, TakesPromptsInAdvanceAndAnswersAsTheyCome) {
  const auth::Tenant ann{"ann", {.tokens_per_minute = 600}};
  EXPECT_EQ(refused(ann, 500, 0.0), 0);
  EXPECT_EQ(header("x-ratelimit-limit-tokens"), "600");
  EXPECT_EQ(header("x-ratelimit-remaining-tokens"), "100");
  limiter_.charge(ann, 400, at_s(0.0));
  EXPECT_EQ(refused(ann, 100, 0.0), 40);
  EXPECT_EQ(header("x-ratelimit-remaining-tokens"), "0");
  EXPECT_EQ(refused(ann, 100, 40.1), 0);
}

TEST_F(Limiter, TellsInAdvanceWhatWouldNotPassAndTakesNothing) {
  const auth::Tenant ann{"ann", {.requests_per_minute = 1, .tokens_per_minute = 100}};
  std::vector<http::Header> headers;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(limiter_.check(ann, at_s(0.0), headers));
  EXPECT_TRUE(headers.empty()) << "they come with the answer";
  EXPECT_EQ(refused(ann, 60, 0.0), 0);
  EXPECT_EQ(limiter_.check(ann, at_s(0.0), headers).error().status, 429);
  EXPECT_FALSE(headers.empty());
}

TEST_F(Limiter, TakesBackWhatNothingWasDoneFor) {
  const auth::Tenant ann{"ann", {.requests_per_minute = 1, .tokens_per_minute = 100}};
  EXPECT_EQ(refused(ann, 60, 0.0), 0);
  limiter_.give_back(ann, 60, at_s(0.0));
  EXPECT_EQ(refused(ann, 100, 0.0), 0);
  for (int i = 0; i < 2; ++i) limiter_.give_back(ann, 100, at_s(0.0));
  EXPECT_EQ(refused(ann, 100, 0.0), 0);
  EXPECT_GT(refused(ann, 1, 0.0), 0) << "no more than a minute holds";
}

TEST_F(Limiter, RefusesForGoodWhatNoMinuteCovers) {
  const ApiStatus status = limiter_.admit({"ann", {.tokens_per_minute = 600}}, 601, at_s(0.0), headers_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().status, 400);
  EXPECT_EQ(status.error().message, "ann: 601 prompt tokens, its key allows 600 a minute");
}

TEST_F(Limiter, KnowsNoLimitWhereNoneIsSet) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(refused({"ann", {}}, 1'000'000, 0.0), 0);
  EXPECT_TRUE(headers_.empty());
}

TEST_F(Limiter, FillsAtTheNewRateWhenTheKeysLimitChanges) {
  EXPECT_EQ(refused({"ann", {.requests_per_minute = 1}}, 1, 0.0), 0);
  EXPECT_EQ(refused({"ann", {.requests_per_minute = 1}}, 1, 0.0), 60);
  EXPECT_EQ(refused({"ann", {.requests_per_minute = 2}}, 1, 0.0), 30);
}

TEST(RateLimits, AnswerWith429AndSayWhatIsLeft) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("kvasir-limits-" + std::to_string(::getpid()))).string();
  ASSERT_TRUE(auth::write_key_file(
      path, {{.name = "ann",
              .hash = auth::hash_of("kv-ann"),
              .created = "2026-11-23T00:00:00Z",
              .limits = {.requests_per_minute = 2, .tokens_per_minute = 1000}},
             {.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-23T00:00:00Z"}}));
  const auto keys = auth::read_key_file(path);
  ASSERT_TRUE(keys);
  EXPECT_EQ((*keys)[0].limits, (auth::RateLimits{.requests_per_minute = 2, .tokens_per_minute = 1000}));
  ServerConfig config;
  config.api_keys_file = path;
  const RunningServer server({}, config);
  const auto ask = [&](const std::string& key) {
    return HttpClient(server.port())
        .request("POST", "/v1/completions", kPrompt, {"Authorization: Bearer " + key});
  };
  const ClientResponse first = ask("kv-ann");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.header("x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(first.header("x-ratelimit-remaining-tokens"), "996");
  const ClientResponse second = ask("kv-ann");
  // The first one's answer is taken off too; what the time between gives back is little.
  EXPECT_LT(std::stoi(second.header("x-ratelimit-remaining-tokens")), 992);
  const ClientResponse third = ask("kv-ann");
  EXPECT_EQ(third.status, 429);
  EXPECT_GE(std::stoi(third.header("retry-after")), 1);
  EXPECT_NE(third.body.find(R"("code":"rate_limit_exceeded")"), std::string::npos) << third.body;
  // Tokenizing counts as well, so that it is no way around.
  const auto tokenize = [&](const std::string& key) {
    return HttpClient(server.port())
        .request("POST", "/tokenize", R"({"prompt":"a"})", {"Authorization: Bearer " + key})
        .status;
  };
  EXPECT_EQ(tokenize("kv-ann"), 429);
  EXPECT_EQ(tokenize("kv-bob"), 200);
  EXPECT_EQ(ask("kv-bob").status, 200);
  EXPECT_EQ(ask("kv-bob").header("x-ratelimit-limit-requests"), "");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace kvasir::server::rate_limit_test
