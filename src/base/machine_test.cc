#include "base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/aligned_buffer.h"
#include "base/cache_sizes.h"
#include "base/cgroup.h"
#include "base/process_memory.h"

namespace kvasir::machine_test {
namespace {

namespace fs = std::filesystem;

// A file tree that plays /proc and /sys.
class FakeSystem : public ::testing::Test {
 protected:
  FakeSystem()
      : root_(fs::path(::testing::TempDir()) /
              ("kvasir_cgroup_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(root_);
  }
  ~FakeSystem() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const fs::path full = root_.string() + path;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  CgroupLimits limits() { return read_cgroup_limits(root_.string()); }

  fs::path root_;
};

using Cgroup = FakeSystem;
using CacheSizesTest = FakeSystem;

TEST_F(Cgroup, HasNoLimitsWhereNothingIsMounted) {
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_limit_bytes);
}

TEST_F(Cgroup, TakesTheTightestLimitOnTheWayUpInVersion2) {
  write("/proc/self/cgroup", "0::/app/worker\n");
  write("/sys/fs/cgroup/app/worker/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  write("/sys/fs/cgroup/app/worker/memory.max", "1000\n");
  write("/sys/fs/cgroup/app/worker/memory.current", "600\n");
  write("/sys/fs/cgroup/app/worker/memory.stat", "anon 100\ninactive_file 200\nactive_file 300\n");
  write("/sys/fs/cgroup/app/memory.max", "2000\n");
  write("/sys/fs/cgroup/app/memory.current", "1800\n");
  write("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(limits().cpus, 1.5);
  EXPECT_EQ(limits().memory_limit_bytes, 1000);
  EXPECT_EQ(limits().memory_headroom_bytes, 200);  // of the parent: 2000 - 1800
}

TEST_F(Cgroup, ReadsVersion1) {
  write("/proc/self/cgroup", "4:memory:/docker/abc\n2:cpuset:/\n1:cpu,cpuacct:/docker/abc\n0::/\n");
  // The host's path is not mounted in the container; the hierarchy's root is the container's own group.
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
  write("/sys/fs/cgroup/memory/memory.stat", "cache 5\ntotal_inactive_file 96\ntotal_active_file 0\n");
  EXPECT_EQ(limits().cpus, 2.0);
  EXPECT_EQ(limits().memory_headroom_bytes, 4096 - (1000 - 96));
}

TEST_F(Cgroup, TakesUnlimitedAndBrokenFilesAsNoLimit) {
  write("/proc/self/cgroup", "1:cpu:/\n4:memory:/\nnonsense\n0::/../../x\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "0\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/cpu.max", "garbage");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_limit_bytes);
  EXPECT_FALSE(limits().memory_headroom_bytes);
}

TEST_F(CacheSizesTest, ReadsTheDataCachesOfACore) {
  const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index";
  const auto add = [&](int index, const char* level, const char* type, const char* size) {
    write(cache + std::to_string(index) + "/level", level);
    write(cache + std::to_string(index) + "/type", type);
    write(cache + std::to_string(index) + "/size", size);
  };
  add(0, "1\n", "Data\n", "48K\n");
  add(1, "1\n", "Instruction\n", "32K\n");
  add(2, "2\n", "Unified\n", "1024K\n");
  const CacheSizes sizes = read_cache_sizes(root_.string());
  EXPECT_EQ(sizes.l1_bytes, 48 << 10);
  EXPECT_EQ(sizes.l2_bytes, 1 << 20);
  EXPECT_EQ(sizes.l3_bytes, 0);
}

TEST(Machine, NeverHasMoreCoresThanLogicalCpusNorMoreFreeThanTotalMemory) {
  const Machine machine = describe_machine();
  EXPECT_GE(machine.num_physical_cores, 1);
  EXPECT_LE(machine.num_physical_cores, machine.num_logical_cpus);
  EXPECT_GT(machine.available_memory_bytes, 0);
  EXPECT_LE(machine.available_memory_bytes, machine.total_memory_bytes);
}

TEST(Machine, RoundsTheCpuQuotaDownToWholeThreads) {
  EXPECT_EQ(usable_physical_cores({.num_physical_cores = 8}), 8);
  EXPECT_EQ(usable_physical_cores({.num_physical_cores = 8, .cpu_quota = 2.9}), 2);
  EXPECT_EQ(usable_physical_cores({.num_physical_cores = 8, .cpu_quota = 0.5}), 1);
  EXPECT_EQ(usable_physical_cores({.num_physical_cores = 2, .cpu_quota = 64.0}), 2);
}

TEST(ProcessMemory, GrowsWithWhatIsTouched) {
  const std::int64_t before = rss_bytes();
  constexpr std::int64_t kSize = 32 << 20;
  AlignedBuffer buffer = AlignedBuffer::allocate(kSize).value();
  for (std::byte& byte : buffer.bytes()) byte = std::byte{1};
  EXPECT_GE(rss_bytes() - before, kSize * 9 / 10);
  constexpr std::int64_t kCountingError = 1 << 20;  // the kernel adds up per-thread counters lazily
  EXPECT_GE(peak_rss_bytes() + kCountingError, rss_bytes());
}

}  // namespace
}  // namespace kvasir::machine_test
