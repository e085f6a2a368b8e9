// Who may enter the queue: whoever is expected to have a first token in time.
#pragma once

#include <cstdint>

#include "kvasir/request.h"
#include "kvasir/result.h"
#include "sched/patience.h"
#include "sched/recent_prompts.h"
#include "sched/scheduler_output.h"
#include "sched/start_forecast.h"

namespace kvasir {

// Knows the load as of the last step and who came since.
//
// Thread safety: none; LocalEngine's mutex guards it.
class StartGate {
 public:
  // `ttft_target_ms` of class 0; 0: everybody may enter.
  StartGate(const sched::WaitingConfig& waiting, std::int32_t ttft_target_ms, bool prefix_cache);

  // Error (kUnavailable) naming the time expected and the limit, with when to try again.
  Status check(const Request& request, sched::TimePoint now);
  // How much of its prompt is expected to be cached when it starts.
  std::int32_t expected_cached_tokens(const Request& request) const;
  // It waits from now on; returns the same.
  std::int32_t enter(const Request& request);

  // With those who entered since.
  const sched::LoadSnapshot& load() const { return load_; }
  std::int32_t num_waiting_sequences() const;

  // Forgets who entered and takes the load as it is; those that it does not count yet are to be added.
  void set_load(const sched::LoadSnapshot& load) { load_ = load; }
  void add_waiting(const Request& request, std::int32_t expected_cached_tokens);

 private:
  bool wants_prompt_only(const Request& request) const;

  const sched::WaitingConfig waiting_;
  const std::int32_t ttft_target_ms_;
  const bool prefix_cache_;
  sched::RecentPrompts recent_prompts_;
  sched::LoadSnapshot load_;
  sched::Patience patience_;
};

}  // namespace kvasir
