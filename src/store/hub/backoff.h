// How long to wait before a failed request is tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "store/hub/http_client.h"

namespace kvasir::store {

// Whether another try may end better: no whole answer, or 408, 429, 500, 502, 503, 504.
bool may_try_again(const HttpResponse& response);

// Waits 0.25 s, then twice as long each time, or as long as the server says: Retry-After, or the reset of
// RateLimit.
//
// Thread safety: none.
class Backoff {
 public:
  enum class Verdict : std::uint8_t {
    kTryAgain,
    kGiveUp,   // six tries failed, or the server asks for more than five minutes
    kStopped,  // keep_running said so
  };

  explicit Backoff(std::function<bool()> keep_running) : keep_running_(std::move(keep_running)) {}

  Verdict wait(const HttpResponse& response);
  // After a try that brought something.
  void reset() { num_failures_ = 0; }

 private:
  std::function<bool()> keep_running_;
  std::int32_t num_failures_ = 0;
};

// The wait that an answer asks for; zero when it asks for none. `now`: for a Retry-After that is a date.
std::chrono::milliseconds requested_wait(const HttpResponse& response,
                                         std::chrono::system_clock::time_point now);

}  // namespace kvasir::store
