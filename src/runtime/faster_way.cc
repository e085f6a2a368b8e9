#include "runtime/faster_way.h"

#include <algorithm>

namespace kvasir::runtime {

std::size_t FasterWay::next() const {
  const auto& [zero, one] = ways_;
  if (std::min(zero.num_runs, one.num_runs) < kTrials) return one.num_runs < zero.num_runs ? 1 : 0;
  const std::size_t faster = one.median_ns < zero.median_ns ? 1 : 0;
  const bool is_slower_due = (zero.num_runs + one.num_runs) % kPeriod == kPeriod - 1;
  return is_slower_due ? 1 - faster : faster;
}

void FasterWay::observe(std::size_t index, double nanoseconds) {
  Way& way = ways_.at(index);
  way.nanoseconds[static_cast<std::size_t>(way.num_runs) % kKept] = nanoseconds;
  ++way.num_runs;
  std::array<double, kKept> sorted = way.nanoseconds;
  const auto end = sorted.begin() + std::min<std::ptrdiff_t>(way.num_runs, std::ssize(sorted));
  const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
  std::nth_element(sorted.begin(), middle, end);
  way.median_ns = *middle;
}

}  // namespace kvasir::runtime
