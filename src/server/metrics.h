// What the server counts beside the engine's own numbers.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/exchange.h"

namespace kvasir::server {

// Observations of a duration in seconds by upper bound, as Prometheus counts them.
//
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

struct CostSums {
  std::int64_t num_requests = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  double preprocess_ms = 0.0, flush_ms = 0.0;
  RequestCost cost;
};

// Thread safety: any thread.
class ServerMetrics {
 public:
  void count_response(std::string_view route, int status);
  // Of requests that the engine worked for, by tenant and route; tenants beyond the first 64 are one.
  void count_cost(const AccessRecord& record);
  void count_abort(AbortCause cause) { ++aborts_[static_cast<std::size_t>(cause)]; }

  // (route, status) and how often.
  std::vector<std::pair<std::pair<std::string, int>, std::int64_t>> responses() const;
  std::vector<std::pair<std::pair<std::string, std::string>, CostSums>> costs() const;
  std::int64_t aborts(AbortCause cause) const { return aborts_[static_cast<std::size_t>(cause)]; }

  Histogram time_to_first_token{kTimeToFirstTokenBounds};
  Histogram inter_token{kInterTokenBounds};
  Histogram request{kRequestBounds};  // generations, from the request's arrival to its last token
  std::atomic<std::int64_t> num_connections{0};
  std::atomic<std::int64_t> num_answering{0};  // requests that arrived and are not fully answered

 private:
  std::array<std::atomic<std::int64_t>, 2> aborts_{};

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::int64_t> responses_;  // guarded; bounded by routes x statuses
  std::map<std::pair<std::string, std::string>, CostSums> costs_;  // guarded; by tenant and route
  std::set<std::string> tenants_;                                  // guarded
};

}  // namespace kvasir::server
