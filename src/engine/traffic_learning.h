// The engine's part of learning from traffic: which requests a learner looks on, and which forecast serves.
#pragma once

#include <cstdint>
#include <string>

#include "engine/active_request.h"
#include "kv/kv_cache_manager.h"
#include "kv/policy/forecast_learner.h"
#include "kvasir/engine.h"
#include "sched/sequence.h"

namespace kvasir {

// Thread safety: describe() from any thread, the others are the engine thread's.
class TrafficLearning {
 public:
  // `learner`: borrowed; null: nothing is learned. `kv`: of the model, outlives it.
  TrafficLearning(kv::ForecastLearner* learner, const kv::KvCacheConfig& kv, const std::string& model_path);

  // Gives a request the forecast that serves now. A request that is chosen keeps all of its KV instead, while nobody waits and
  // the pool has room for twice as much.
  void prepare(ActiveRequest& request, const kv::KvCacheManager& cache, std::int64_t num_waiting, sched::SequenceRequest& sequence) const;
  void note_waiting(std::int64_t num_requests) const;
  void describe(EngineStats& stats) const;

 private:
  bool has_room(const sched::SequenceRequest& sequence, const kv::KvCacheManager& cache) const;

  kv::ForecastLearner* learner_;
  const kv::KvCacheConfig& kv_;
};

}  // namespace kvasir
