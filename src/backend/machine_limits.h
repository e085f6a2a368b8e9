// This machine's greatest speeds: the limits that every measured speed is a share of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::backend {

// Reading alone, from a working set that fits one level of the memory hierarchy.
struct ReadBandwidth {
  std::string level;                   // "L1", "L2", "L3", "DRAM"
  std::int64_t working_set_bytes = 0;  // of each thread; for DRAM of all together
  double one_thread_gb_s = 0.0;        // 1e9 bytes per second
  double all_threads_gb_s = 0.0;
};

struct MachineLimits {
  int num_threads = 1;
  double read_gb_s = 0.0;     // from DRAM, all threads
  double int8_gmac_s = 0.0;   // 1e9 multiply-accumulates of bytes per second, all threads
  double fp32_gflop_s = 0.0;  // 1e9 operations per second (a fused multiply-add is two), all threads
  double one_thread_int8_gmac_s = 0.0;
  double one_thread_fp32_gflop_s = 0.0;
  std::vector<ReadBandwidth> levels;  // nearest first; caches the machine does not report are left out
};

enum class ProbeScope : std::uint8_t {
  kEverything,
  kTotals,  // DRAM alone and no figure of one thread: a quarter of the time
};

// Takes about two seconds and, for its time, four times the L3 of memory (256 MiB to 1 GiB, at most a quarter
// of what is available). Each figure is the best of a few short runs: other load on the machine lowers it.
// Error (kMachine): not enough memory. Requires: num_threads >= 1.
Result<MachineLimits> measure_machine_limits(int num_threads, ProbeScope scope = ProbeScope::kEverything);

}  // namespace kvasir::backend
