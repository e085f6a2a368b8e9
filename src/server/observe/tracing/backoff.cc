#include "server/observe/tracing/backoff.h"

#include <algorithm>

namespace kvasir::server::observe {

std::optional<Backoff::Milliseconds> Backoff::next(Clock::time_point now,
                                                   std::optional<std::chrono::seconds> asked, double random) {
  const auto scattered = std::chrono::duration_cast<Milliseconds>(
      std::chrono::duration<double, std::milli>(next_) * (0.5 + random / 2.0));
  const Milliseconds delay = asked ? std::max(Milliseconds(*asked), scattered) : scattered;
  next_ = std::min(2 * next_, longest_);
  if (delay > give_up_at_ - now) return {};
  return delay;
}

}  // namespace kvasir::server::observe
