#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/text_file.h"

namespace kvasir {
namespace {

// A non-negative number at the front of `text`; "max" and "-1" (unlimited) give nothing.
std::optional<std::int64_t> parse_limit(std::string_view text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  return number;
}

std::optional<std::int64_t> read_limit(const std::string& path) {
  const std::optional<std::string> text = read_text_file(path);
  return text ? parse_limit(*text) : std::nullopt;
}

// The number after `name` and a space in memory.stat; 0 when it is not there.
std::int64_t read_stat(const std::string& path, std::string_view name) {
  std::istringstream stat(read_text_file(path).value_or(""));
  std::string key;
  std::int64_t number = 0;
  while (stat >> key >> number) {
    if (key == name) return number;
  }
  return 0;
}

template <class T>
void tighten(std::optional<T>& limit, std::optional<T> other) {
  if (other) limit = limit ? std::min(*limit, *other) : *other;
}

void tighten_cpus(CgroupLimits& limits, std::optional<std::int64_t> quota_us,
                  std::optional<std::int64_t> period_us) {
  if (!quota_us || !period_us || *period_us == 0) return;
  tighten(limits.cpus, std::optional(static_cast<double>(*quota_us) / static_cast<double>(*period_us)));
}

void tighten_memory(CgroupLimits& limits, std::optional<std::int64_t> limit, std::optional<std::int64_t> use,
                    std::int64_t cached) {
  if (!limit) return;
  tighten(limits.memory_limit_bytes, limit);
  const std::int64_t in_use = std::max<std::int64_t>(0, use.value_or(0) - cached);
  tighten(limits.memory_headroom_bytes, std::optional(std::max<std::int64_t>(0, *limit - in_use)));
}

void read_v2(const std::string& directory, CgroupLimits& limits) {
  if (const std::optional<std::string> cpu_max = read_text_file(directory + "/cpu.max")) {
    const std::size_t space = cpu_max->find(' ');  // "200000 100000" or "max 100000"
    if (space != std::string::npos) {
      tighten_cpus(limits, parse_limit(*cpu_max), parse_limit(std::string_view(*cpu_max).substr(space + 1)));
    }
  }
  const std::string stat = directory + "/memory.stat";
  tighten_memory(limits, read_limit(directory + "/memory.max"), read_limit(directory + "/memory.current"),
                 read_stat(stat, "inactive_file") + read_stat(stat, "active_file"));
}

void read_v1_cpu(const std::string& directory, CgroupLimits& limits) {
  tighten_cpus(limits, read_limit(directory + "/cpu.cfs_quota_us"),
               read_limit(directory + "/cpu.cfs_period_us"));
}

void read_v1_memory(const std::string& directory, CgroupLimits& limits) {
  // "Unlimited" is the largest multiple of the page size here.
  constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;
  const std::optional<std::int64_t> limit = read_limit(directory + "/memory.limit_in_bytes");
  if (!limit || *limit >= kUnlimited) return;
  const std::string stat = directory + "/memory.stat";
  tighten_memory(limits, limit, read_limit(directory + "/memory.usage_in_bytes"),
                 read_stat(stat, "total_inactive_file") + read_stat(stat, "total_active_file"));
}

// A group and those above it, up to the hierarchy's root "". In a container the path may be one of the
// host's, which is not there; the root then is the container's own group.
std::vector<std::string> with_ancestors(std::string path) {
  std::vector<std::string> paths;
  if (path.find("..") != std::string::npos) path.clear();
  while (!path.empty()) {
    if (path != "/") paths.push_back(path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  paths.emplace_back();
  return paths;
}

bool has_controller(const std::string& controllers, const std::string& name) {
  return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::string mount = root + "/sys/fs/cgroup";
  std::istringstream groups(read_text_file(root + "/proc/self/cgroup").value_or(""));
  std::string line;
  while (std::getline(groups, line)) {  // "4:memory:/path"; version 2 is "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const std::string& path : with_ancestors(line.substr(second + 1))) {
      if (controllers.empty()) {
        read_v2(mount + path, limits);
        read_v2(mount + "/unified" + path, limits);
      }
      if (has_controller(controllers, "cpu")) {
        read_v1_cpu(mount + "/cpu" + path, limits);
        read_v1_cpu(mount + "/cpu,cpuacct" + path, limits);
      }
      if (has_controller(controllers, "memory")) read_v1_memory(mount + "/memory" + path, limits);
    }
  }
  return limits;
}

}  // namespace kvasir
