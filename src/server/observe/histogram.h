// Observations of a duration by upper bound, as Prometheus counts them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir::server::observe {

// Thread safety: any thread.
class Histogram {
 public:
  static constexpr std::size_t kMaxBuckets = 16;

  // Requires: at most kMaxBuckets ascending bounds, which outlive the histogram.
  explicit Histogram(std::span<const double> bounds_seconds) : bounds_(bounds_seconds) {}

  void observe(std::chrono::duration<double> duration);

  std::span<const double> bounds() const { return bounds_; }
  // At most bounds()[bucket], but above the bound before; bucket == bounds().size(): above all.
  std::int64_t count_in(std::size_t bucket) const { return counts_[bucket]; }
  double sum_seconds() const { return sum_; }
  std::int64_t count() const;

 private:
  std::span<const double> bounds_;
  std::array<std::atomic<std::int64_t>, kMaxBuckets + 1> counts_{};
  std::atomic<double> sum_{0.0};
};

// Buckets of the OpenTelemetry GenAI semantic conventions.
inline constexpr std::array<double, 16> kTimeToFirstTokenBounds = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0};
inline constexpr std::array<double, 13> kInterTokenBounds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                                             0.3,  0.4,   0.5,  0.75,  1.0, 2.5};
inline constexpr std::array<double, 14> kRequestBounds = {0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                                          1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};

}  // namespace kvasir::server::observe
