// The data caches of a core.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir {

// 0 where the machine has no such cache or does not say.
struct CacheSizes {
  std::int64_t l1_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t l3_bytes = 0;  // all of it, though other cores may share it
};

// Reads the caches of processor 0, below `root` (another root serves tests). CPUID is not asked: inside
// virtual machines it may give the L3 of the whole socket.
CacheSizes read_cache_sizes(const std::string& root = "");

}  // namespace kvasir
