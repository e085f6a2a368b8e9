// How long to wait before the next attempt.
#pragma once

#include <chrono>
#include <optional>

namespace kvasir::server::observe {

// Twice as long each time, and then a random part of that between half and all: many clients of one server
// that was down must not come back at once. The server may ask for a time, which is then the least.
//
// Thread safety: none. It reads no clock.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  struct Limits {
    Milliseconds first{1000};
    Milliseconds longest{15'000};
    Milliseconds give_up_after{60'000};  // from the first attempt on
  };

  Backoff(const Limits& limits, Clock::time_point began)
      : give_up_at_(began + limits.give_up_after), longest_(limits.longest), next_(limits.first) {}

  // Nothing: that was the last attempt. `asked`: what the server asks for; `random` is 0 to 1.
  std::optional<Milliseconds> next(Clock::time_point now, std::optional<std::chrono::seconds> asked,
                                   double random);

 private:
  const Clock::time_point give_up_at_;
  const Milliseconds longest_;
  Milliseconds next_;
};

}  // namespace kvasir::server::observe
