// The engine's numbers as its users see them, taken from where they are counted.
#pragma once

#include <cstdint>

#include "kv/kv_cache_manager.h"
#include "kvasir/engine.h"
#include "sched/scheduler.h"

namespace kvasir {

void take_counts(const sched::Scheduler& scheduler, sched::TimePoint now, EngineStats& stats);
void take_counts(const kv::KvCacheManager& kv, EngineStats& stats);

// One more choice under a guide that has ended.
// One mask of one choice.
void count_mask(EngineStats& stats, double seconds);
void count_guided_answer(EngineStats& stats, FinishReason reason, std::int32_t num_forced_tokens);

// One more step.
void count_step(EngineStats& stats, std::int64_t num_sequences, double seconds);

}  // namespace kvasir
