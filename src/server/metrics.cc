#include "server/metrics.h"

#include <algorithm>

namespace kvasir::server {

void Histogram::observe(std::chrono::duration<double> duration) {
  const auto bucket = std::ranges::lower_bound(bounds_, duration.count()) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += duration.count();
}

void ServerMetrics::count_response(std::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[{std::string(route), status}];
}

std::vector<std::pair<std::pair<std::string, int>, std::int64_t>> ServerMetrics::responses() const {
  const std::lock_guard lock(mutex_);
  return {responses_.begin(), responses_.end()};
}

}  // namespace kvasir::server
