// The engine thread's requests and memory as others may see them.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/active_request.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/engine_snapshot.h"
#include "sched/scheduler.h"

namespace kvasir {

EngineSnapshot take_engine_snapshot(
    const std::unordered_map<std::uint64_t, std::unique_ptr<ActiveRequest>>& requests,
    const sched::Scheduler& scheduler, const kv::KvCacheManager& kv, sched::TimePoint now);

}  // namespace kvasir
