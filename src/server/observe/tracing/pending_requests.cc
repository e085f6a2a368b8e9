#include "server/observe/tracing/pending_requests.h"

#include <algorithm>
#include <utility>

namespace kvasir::server::observe {

bool PendingRequests::push(TracedRequest request, Clock::time_point now) {
  if (requests_.size() >= limits_.max_requests) return false;
  requests_.push_back({std::move(request), now});
  return true;
}

PendingRequests::Clock::time_point PendingRequests::due_at() const {
  if (requests_.empty()) return Clock::time_point::max();
  const Clock::time_point oldest = requests_.front().pushed_at;
  return requests_.size() >= limits_.batch_requests ? oldest : oldest + limits_.max_delay;
}

std::vector<TracedRequest> PendingRequests::take_batch() {
  std::vector<TracedRequest> batch;
  while (!requests_.empty() && batch.size() < limits_.batch_requests) {
    batch.push_back(std::move(requests_.front().request));
    requests_.pop_front();
  }
  return batch;
}

}  // namespace kvasir::server::observe
