// Requests whose spans wait to be sent, and when that is.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "server/observe/tracing/request_spans.h"

namespace kvasir::server::observe {

// Full, it takes no more: the older spans are nearer to being sent.
//
// Thread safety: none. It reads no clock.
class PendingRequests {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    std::size_t max_requests = 1024;
    std::size_t batch_requests = 128;  // so many are sent at once, without waiting for more
    std::chrono::milliseconds max_delay{2000};
  };

  explicit PendingRequests(const Limits& limits) : limits_(limits) {}

  // False: it is full.
  bool push(TracedRequest request, Clock::time_point now);
  // When the next batch is to be sent; never while there is none.
  Clock::time_point due_at() const;
  // The oldest, at most a batch.
  std::vector<TracedRequest> take_batch();
  bool empty() const { return requests_.empty(); }

 private:
  struct Entry {
    TracedRequest request;
    Clock::time_point pushed_at;
  };

  const Limits limits_;
  std::deque<Entry> requests_;
};

}  // namespace kvasir::server::observe
