// Counters of the KV cache, for metrics and reports.
#pragma once

#include <cstdint>
#include <vector>

namespace kvasir::kv {

struct KvGroupStats {
  std::int32_t num_blocks = 0;
  std::int32_t num_referenced = 0;   // held by at least one sequence
  std::int32_t num_cached_free = 0;  // free, but still worth a prefix hit
};

struct KvStats {
  std::vector<KvGroupStats> groups;
  std::int64_t num_evictions = 0;     // cached blocks reused for something else
  std::int64_t num_deduplicated = 0;  // blocks given back because an equal one was cached already
  std::int64_t num_borrowed_tokens = 0;  // found by sequences with a policy, and cached by others without one
};

}  // namespace kvasir::kv
