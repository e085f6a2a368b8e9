// How late a first token may be for a request that comes now.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "admission/time_point.h"

namespace kvasir::admission {

// A server that refuses requests all the time is as busy with a short queue as with a long one, and a short
// queue makes its requests wait less. So there is less slack while requests are refused. A burst after a calm
// gets more slack, for the moment in which it comes: there is time to catch up.
//
// A tenant that is underserved (ttft_estimate.h) has not made the queue. Only its own backlog and its own
// refusals count for it, as if it were alone.
//
// Thread safety: none.
class TtftSlack {
 public:
  struct Arrival {
    std::string_view tenant;
    bool is_underserved = false;
    // Other prompts are still to be computed: anybody's, and the tenant's own.
    bool has_backlog = false;
    bool has_own_backlog = false;
  };

  // In targets.
  double targets(const Arrival& arrival, TimePoint now);
  void note_refusal(std::string_view tenant, TimePoint now);

 private:
  struct History {
    std::optional<TimePoint> last_refusal;
    std::optional<TimePoint> backlog_began;
    TimePoint last_arrival{};

    void note_arrival(bool has_backlog, TimePoint now);
    bool was_refused_within(TimePoint::duration time, TimePoint now) const;
    bool is_burst(TimePoint now) const;
  };

  History& history_of(std::string_view tenant, TimePoint now);

  History all_;
  std::map<std::string, History, std::less<>> tenants_;  // those of the last minute, when there are many
};

}  // namespace kvasir::admission
