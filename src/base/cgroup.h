// Limits that the kernel's control groups set for this process, as in containers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvasir {

// Nothing means "no limit". The tightest of the process's group and all groups above it.
struct CgroupLimits {
  std::optional<double> cpus;  // CPU seconds per second
  std::optional<std::int64_t> memory_limit_bytes;
  std::optional<std::int64_t> memory_headroom_bytes;  // limit - use, where cached file pages are not use
};

// Reads versions 1 and 2, below `root` (another root serves tests). Missing or odd files count as no limit.
CgroupLimits read_cgroup_limits(const std::string& root = "");

}  // namespace kvasir
