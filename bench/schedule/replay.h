// The real scheduler and KV bookkeeping under a trace, with a machine that takes the time a formula says.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/scheduler.h"
#include "trace.h"

namespace kvasir::schedule {

// Milliseconds of a step: what StepTimeModel learns.
struct Machine {
  double ms_per_step = 1.5;
  double ms_per_stream = 0.6;
  double ms_per_prompt_token = 0.45;
  double ms_per_100k_keys = 4.0;

  double step_ms(const admission::StepWork& work) const;
};

struct ReplayConfig {
  sched::SchedulerConfig scheduler;
  Machine machine;
  std::int64_t kv_tokens = 65'536;
  std::int32_t num_tenants = 1;
  bool refuses = true;  // at once those expected to miss the target
  std::int32_t max_waiting = 256;
};

struct RequestOutcome {
  bool refused = false;
  double ttft_ms = 0.0;
  std::int32_t num_gaps = 0, num_long_gaps = 0;  // between tokens; longer than 100 ms

  // TTFT of at most 2 s and 95% of the gaps at most 100 ms.
  bool keeps_slo() const;
};

struct ReplayResult {
  std::vector<RequestOutcome> outcomes;  // as the trace has them
  double seconds = 0.0;                  // simulated
  std::int64_t num_generated_tokens = 0;
  std::int64_t num_steps = 0;
  std::int64_t num_preemptions = 0;
};

ReplayResult replay(const std::vector<TraceRequest>& trace, const ReplayConfig& config);

}  // namespace kvasir::schedule
