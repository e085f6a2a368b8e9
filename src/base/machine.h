// The processors and memory this process may use, after affinity masks and container limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvasir {

struct Machine {
  std::string cpu_model = {};
  int num_logical_cpus = 1;              // in the affinity mask
  int num_physical_cores = 1;            // among those; hardware threads of one core count once
  std::optional<double> cpu_quota = {};  // CPU seconds per second that a container may use
  std::int64_t total_memory_bytes = 0;
  std::int64_t available_memory_bytes = 0;  // memory that can be taken now without swapping
};

Machine describe_machine();

// How many threads compute best: physical cores of the affinity mask, at most the CPU quota (rounded down: a
// throttled thread stalls the whole step), at least 1.
int usable_physical_cores();
int usable_physical_cores(const Machine& machine);

std::int64_t available_memory_bytes();

}  // namespace kvasir
