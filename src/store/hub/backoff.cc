#include "store/hub/backoff.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>

namespace kvasir::store {
namespace {

using std::chrono::milliseconds;

constexpr std::int32_t kMostFailures = 6;
constexpr milliseconds kFirstWait(250);
constexpr milliseconds kLongestWait = std::chrono::minutes(5);
constexpr milliseconds kTimeSlice(50);

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || number < 0 || number > 1'000'000) return std::nullopt;
  return number;
}

// "api";r=0;t=55: t is the seconds until the limit is new.
std::optional<std::int64_t> seconds_to_reset(std::string_view limit) {
  const std::size_t at = limit.find(";t=");
  return at == limit.npos ? std::nullopt : leading_number(limit.substr(at + 3));
}

milliseconds with_jitter(milliseconds wait) {
  static thread_local std::minstd_rand random(std::random_device{}());
  return wait + milliseconds(std::uniform_int_distribution<std::int64_t>(0, wait.count() / 4)(random));
}

}  // namespace

bool may_try_again(const HttpResponse& response) {
  if (response.end == HttpResponse::End::kBroken) return !response.is_permanent;
  constexpr std::int32_t kPassing[] = {408, 429, 500, 502, 503, 504};
  return std::ranges::find(kPassing, response.status) != std::end(kPassing);
}

milliseconds requested_wait(const HttpResponse& response, std::chrono::system_clock::time_point now) {
  const std::string_view after = response.header("retry-after");
  if (const auto seconds = leading_number(after)) return std::chrono::seconds(*seconds);
  if (!after.empty()) {
    const std::time_t until = curl_getdate(std::string(after).c_str(), nullptr);
    const std::time_t present = std::chrono::system_clock::to_time_t(now);
    if (until > present) return std::chrono::seconds(until - present);
  }
  if (response.status != 429) return {};
  return std::chrono::seconds(seconds_to_reset(response.header("ratelimit")).value_or(0));
}

Backoff::Verdict Backoff::wait(const HttpResponse& response) {
  if (++num_failures_ >= kMostFailures) return Verdict::kGiveUp;
  milliseconds wait = requested_wait(response, std::chrono::system_clock::now());
  if (wait > kLongestWait) return Verdict::kGiveUp;
  const bool says_at_once = response.header("retry-after") == "0";
  if (wait.count() == 0 && !says_at_once) wait = with_jitter(kFirstWait * (1 << (num_failures_ - 1)));
  const auto end = std::chrono::steady_clock::now() + wait;
  do {
    if (!keep_running_()) return Verdict::kStopped;
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Verdict::kTryAgain;
    std::this_thread::sleep_for(std::min(left, kTimeSlice));
  } while (true);
}

}  // namespace kvasir::store
