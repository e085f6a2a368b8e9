// Admits a request to the queue when its first token is expected in time.
#pragma once

#include <cstdint>

#include "admission/load_snapshot.h"
#include "admission/recent_prompts.h"
#include "admission/ttft_slack.h"
#include "admission/waiting_key.h"
#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::admission {

// Knows the load as of the last step and the requests that came since.
//
// Thread safety: none; LocalEngine's mutex guards it.
class TtftAdmission {
 public:
  // `ttft_target_ms` of class 0; 0: all are admitted.
  TtftAdmission(const WaitingConfig& waiting, std::int32_t ttft_target_ms, bool prefix_cache);

  // Error (kUnavailable) naming the time expected and the limit, with when to try again.
  Status check(const Request& request, TimePoint now);
  // How much of its prompt is expected to be cached when it starts.
  std::int32_t expected_cached_tokens(const Request& request) const;
  // The request waits from now on; returns the same.
  std::int32_t admit(const Request& request);

  // With the requests that were admitted since.
  const LoadSnapshot& load() const { return load_; }
  std::int32_t num_waiting_sequences() const;

  // Takes the load as it is and forgets what was admitted; requests that it does not count yet are to be added.
  void set_load(const LoadSnapshot& load) { load_ = load; }
  void add_waiting(const Request& request, std::int32_t expected_cached_tokens);

 private:
  bool wants_prompt_only(const Request& request) const;

  const WaitingConfig waiting_;
  const std::int32_t ttft_target_ms_;
  const bool prefix_cache_;
  RecentPrompts recent_prompts_;
  LoadSnapshot load_;
  TtftSlack slack_;
};

}  // namespace kvasir::admission
