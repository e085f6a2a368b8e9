#include "server/observe/histogram.h"

#include <algorithm>

namespace kvasir::server::observe {

void Histogram::observe(std::chrono::duration<double> duration) {
  const auto bucket = std::ranges::lower_bound(bounds_, duration.count()) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += duration.count();
}

std::int64_t Histogram::count() const {
  std::int64_t count = 0;
  for (std::size_t bucket = 0; bucket <= bounds_.size(); ++bucket) count += counts_[bucket];
  return count;
}

}  // namespace kvasir::server::observe
