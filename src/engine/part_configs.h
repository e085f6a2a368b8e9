// The settings of the engine's parts, made from its own and from the model.
#pragma once

#include "admission/queue_limit.h"
#include "admission/waiting_key.h"
#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/engine.h"
#include "sched/scheduler_config.h"

namespace kvasir {

// With a key of its own for the hashes of prefixes, drawn anew.
kv::KvCacheConfig kv_config(const EngineConfig& config, const LoadedModel& loaded);
admission::WaitingConfig waiting_config(const EngineConfig& config);
sched::SchedulerConfig scheduler_config(const EngineConfig& config, const LoadedModel& loaded);
admission::QueueLimitConfig queue_limit_config(const EngineConfig& config, const kv::KvCacheManager& kv);

}  // namespace kvasir
