#include "base/cpu_load.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <sstream>
#include <string_view>

#include "base/text_file.h"

namespace kvasir {
namespace {

std::set<int> processors_in_mask() {
  std::set<int> cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) cpus.insert(cpu);
  }
  return cpus;
}

std::optional<CpuTicks> read_cpu_ticks() {
  constexpr std::size_t kMaxStatBytes = std::size_t{16} << 20;
  return parse_cpu_ticks(read_text_file("/proc/stat", kMaxStatBytes).value_or(""), processors_in_mask());
}

double own_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

std::optional<CpuTicks> parse_cpu_ticks(const std::string& proc_stat, const std::set<int>& cpus) {
  CpuTicks sum;
  std::istringstream lines(proc_stat);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    // user nice system idle iowait irq softirq steal; guests' time is part of user and nice.
    std::int64_t ticks[8] = {};
    if (!(words >> name) || !name.starts_with("cpu") || name == "cpu") continue;
    int cpu = -1;
    if (!(std::istringstream(name.substr(3)) >> cpu) || !cpus.contains(cpu)) continue;
    for (std::int64_t& tick : ticks) words >> tick;  // old kernels have fewer
    for (const std::int64_t tick : ticks) sum.total += tick;
    sum.busy += ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  }
  if (sum.total == 0) return std::nullopt;
  return sum;
}

CpuLoadMeter::CpuLoadMeter() : begin_(read_cpu_ticks()), own_begin_s_(own_cpu_seconds()) {}

std::optional<double> CpuLoadMeter::others_share() const {
  const std::optional<CpuTicks> now = read_cpu_ticks();
  if (!begin_ || !now || now->total <= begin_->total) return std::nullopt;
  const double own = (own_cpu_seconds() - own_begin_s_) * static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto busy = static_cast<double>(now->busy - begin_->busy);
  const auto total = static_cast<double>(now->total - begin_->total);
  return std::clamp((busy - own) / total, 0.0, 1.0);
}

}  // namespace kvasir
