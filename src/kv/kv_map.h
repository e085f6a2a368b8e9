// For whom the KV cache's memory is, and in which formats.
#pragma once

#include <array>
#include <cstdint>

#include "kv/kv_cache_manager.h"
#include "kvasir/engine_snapshot.h"

namespace kvasir::kv {

// Bytes by KvOwner and KvFormat; the sum is what the arena has in use.
using KvMap = std::array<std::array<std::int64_t, kNumKvFormats>, kNumKvOwners>;

// Walks every cell that is in use: about a nanosecond each, for callers that ask now and then.
KvMap map_of(const KvCacheManager& kv);

}  // namespace kvasir::kv
