// Decides which requests enter the engine, and counts the requests that it refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "admission/queue_limit.h"
#include "admission/ttft_admission.h"
#include "kvasir/engine.h"

namespace kvasir {

// The queue limit first, then the time to the first token. A request that is_admitted passes both.
//
// Thread safety: none; LocalEngine's mutex guards it.
class RequestAdmission {
 public:
  RequestAdmission(const admission::QueueLimitConfig& queue_limit, const admission::WaitingConfig& waiting,
                   const EngineConfig& config);

  // How many of the requests, counted from the first, may enter: all of them or an error. With `allow_part` it
  // is at least one of them. Error (kUnavailable, kUsage): those of QueueLimit and TtftAdmission.
  Result<std::size_t> check(std::span<const Submission> submissions, bool allow_part,
                            admission::TimePoint now);
  // Returns how many prompt tokens are expected to be cached when the request starts.
  std::int32_t admit(const Request& request);
  // The request's last output is delivered.
  void leave(std::string_view tenant, std::string_view adapter) { queue_limit_.leave(tenant, adapter); }
  std::int64_t num_unfinished() const { return queue_limit_.num_unfinished(); }

  // Takes the load after a step. Requests that it does not count yet are added by add_waiting().
  void set_load(const admission::LoadSnapshot& load) { ttft_admission_.set_load(load); }
  void add_waiting(const Request& request, std::int32_t expected_cached_tokens) {
    ttft_admission_.add_waiting(request, expected_cached_tokens);
  }

  void count_rejected(std::size_t num_requests) { num_rejected_ += static_cast<std::int64_t>(num_requests); }
  // Fills in waiting sequences and refused requests.
  void describe(EngineStats& stats) const;

 private:
  Status check_queue(std::span<const Submission> submissions, std::int64_t num_spared) const;

  admission::QueueLimit queue_limit_;
  admission::TtftAdmission ttft_admission_;
  std::int64_t num_rejected_ = 0;
  std::int64_t num_too_late_ = 0;
  std::int64_t num_beyond_queue_ = 0;
};

}  // namespace kvasir
