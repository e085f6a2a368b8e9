// How late a first token may be for a request that comes now.
#pragma once

#include <optional>

#include "admission/time_point.h"

namespace kvasir::admission {

// A server that refuses requests all the time is as busy with a short queue as with a long one, and a short
// queue makes its requests wait less. So there is less slack while requests are refused; not for a tenant that
// is underserved (ttft_estimate.h), which has not made that queue. A burst after a calm gets more slack, for
// the moment in which it comes: there is time to catch up.
//
// Thread safety: none.
class TtftSlack {
 public:
  // In targets. `has_backlog`: other prompts are still to be computed.
  double targets(bool has_backlog, bool is_underserved, TimePoint now);
  void note_refusal(TimePoint now) { last_refusal_ = now; }

 private:
  std::optional<TimePoint> last_refusal_;
  std::optional<TimePoint> backlog_began_;
};

}  // namespace kvasir::admission
