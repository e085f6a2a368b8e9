#include "base/machine.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "base/cgroup.h"
#include "base/text_file.h"

namespace kvasir {
namespace {

std::vector<int> affinity_cpus() {
  std::vector<int> cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) cpus.push_back(cpu);
    }
  } else {  // more processors than the mask holds
    const int count = static_cast<int>(std::thread::hardware_concurrency());
    for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

// Hardware threads of one core list the same siblings.
int count_cores(const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    std::optional<std::string> siblings = read_text_file(topology + "core_cpus_list");
    if (!siblings) siblings = read_text_file(topology + "thread_siblings_list");  // before Linux 5.2
    cores.insert(siblings.value_or(std::to_string(cpu)));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

// The value of "name   : value" or "name: value" in a /proc table; empty when it is not there.
std::string table_value(const std::string& table, std::string_view name) {
  std::istringstream lines(table);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// "AMD EPYC (family 25 model 17)": virtual machines hide which one it is in the name. ARM has numbers alone.
std::string cpu_model() {
  constexpr std::size_t kMaxCpuInfoBytes = std::size_t{16} << 20;
  const std::string table = read_text_file("/proc/cpuinfo", kMaxCpuInfoBytes).value_or("");
  // The tab: "model name" begins alike.
  const std::string family = table_value(table, "cpu family"), model = table_value(table, "model\t");
  const std::string name = table_value(table, "model name");
  const std::string implementer = table_value(table, "CPU implementer"), part = table_value(table, "CPU part");
  if (name.empty() && !part.empty()) return fmt::format("ARM (implementer {} part {})", implementer, part);
  return family.empty() ? name : fmt::format("{} (family {} model {})", name, family, model);
}

// "MemTotal:  123 kB" in bytes; the largest integer when it is not there.
std::int64_t meminfo_bytes(const std::string& meminfo, std::string_view name) {
  std::istringstream value(table_value(meminfo, name));
  std::int64_t kibibytes = 0;
  return value >> kibibytes ? kibibytes * 1024 : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

Machine describe_machine() {
  const std::vector<int> cpus = affinity_cpus();
  const std::string meminfo = read_text_file("/proc/meminfo").value_or("");
  const CgroupLimits limits = read_cgroup_limits();
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  return {
      .cpu_model = cpu_model(),
      .num_logical_cpus = std::max(1, static_cast<int>(cpus.size())),
      .num_physical_cores = count_cores(cpus),
      .cpu_quota = limits.cpus,
      .total_memory_bytes =
          std::min(meminfo_bytes(meminfo, "MemTotal"), limits.memory_limit_bytes.value_or(kNoLimit)),
      .available_memory_bytes =
          std::min(meminfo_bytes(meminfo, "MemAvailable"), limits.memory_headroom_bytes.value_or(kNoLimit)),
  };
}

int usable_physical_cores(const Machine& machine) {
  const double quota = machine.cpu_quota.value_or(machine.num_physical_cores);
  return std::max(1, static_cast<int>(std::min(quota, static_cast<double>(machine.num_physical_cores))));
}

int usable_physical_cores() { return usable_physical_cores(describe_machine()); }

std::int64_t available_memory_bytes() { return describe_machine().available_memory_bytes; }

}  // namespace kvasir
