// The share of the processors' time that other programs take.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace kvasir {

// Time of some processors since the machine started, in the kernel's ticks.
struct CpuTicks {
  std::int64_t busy = 0;   // with programs, the kernel, or (steal) other virtual machines
  std::int64_t total = 0;  // and idle
};

// Ticks of the processors named, from the text of /proc/stat; nothing when it has none of them.
std::optional<CpuTicks> parse_cpu_ticks(const std::string& proc_stat, const std::set<int>& cpus);

// Measures from its construction on. Thread safety: none.
class CpuLoadMeter {
 public:
  CpuLoadMeter();
  // The share of the time of the processors in this process's affinity mask that went to others than this process, 0
  // to 1. Nothing where the kernel does not say, or before its clock has ticked.
  std::optional<double> others_share() const;

 private:
  std::optional<CpuTicks> begin_;
  double own_begin_s_ = 0.0;
};

}  // namespace kvasir
