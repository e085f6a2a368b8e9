// A random scenario: limits, requests and the moments at which they are disturbed. A pure function of the
// seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kv/kv_cache_manager.h"
#include "sched/scheduler.h"

namespace kvasir::sim {

// When in a step a sequence is finished from outside.
enum class Moment : std::uint8_t { kBeforeSchedule, kBeforeUpdate, kAfterUpdate };

struct Disturbance {
  std::int32_t choice = 0;
  std::int32_t step = 0;  // absolute
  Moment moment = Moment::kBeforeSchedule;
};

struct SimRequest {
  std::int32_t arrival_step = 0;
  sched::SequenceRequest request;  // request_id is its index in the workload
  std::uint64_t sample_seed = 0;   // choice i samples with sample_seed + i
  std::vector<Disturbance> cancels;
  // As a stop string would: the choice ends once it has generated this many tokens. 0: never.
  std::int32_t stop_string_after_tokens = 0;
};

struct Workload {
  kv::KvCacheConfig kv;
  sched::SchedulerConfig scheduler;
  std::int32_t vocab_size = 0;
  std::vector<SimRequest> requests;  // by arrival
};

Workload make_workload(std::uint64_t seed);
std::string describe(const Workload& workload);

inline sched::TimePoint time_of_step(std::int32_t step) {
  return sched::TimePoint(std::chrono::milliseconds(step));
}

}  // namespace kvasir::sim
