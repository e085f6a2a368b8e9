// The time of steps on this machine, before the first request.
#pragma once

#include <cstdint>

#include "admission/step_time_model.h"
#include "kv/kv_cache_manager.h"
#include "runtime/model_runner.h"
#include "sched/scheduler.h"

namespace kvasir {

// Runs a few short prompts and tokens after them through the model, alone, and returns the steps' times.
// Without it a server cannot tell late requests before it has answered one, and steps that all have streams
// beside prompts do not tell the two apart. The prefix cache keeps nothing of it.
//
// Requires: nothing else runs on `kv` and `runner`.
admission::StepTimeModel warm_up(const sched::SchedulerConfig& config, kv::KvCacheManager& kv,
                                 runtime::ModelRunner& runner, std::int32_t max_model_len_tokens);

}  // namespace kvasir
