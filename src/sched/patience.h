// How long a first token may take for a request that comes now.
#pragma once

#include <optional>

#include "sched/scheduler_output.h"

namespace kvasir::sched {

// A server that refuses somebody all the time is as busy with a short queue as with a long one, and whoever
// is let in waits less; a tenant that is owed something (is_owed in start_forecast.h) has not made that queue
// and need not wait less than promised. Those who come at once after a calm, and only at once, are let in
// though the last of them are late: there is time to catch up.
//
// Thread safety: none.
class Patience {
 public:
  // In targets. `has_backlog`: prompts of others are still to be computed.
  double targets(bool has_backlog, bool is_owed, TimePoint now);
  void note_refusal(TimePoint now) { last_refusal_ = now; }

 private:
  std::optional<TimePoint> last_refusal_;
  std::optional<TimePoint> backlog_began_;
};

}  // namespace kvasir::sched
