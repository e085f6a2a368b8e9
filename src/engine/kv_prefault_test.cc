#include "engine/kv_prefault.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace kvasir::kv_prefault_test {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Linux does since 5.14. Asked without AlignedBuffer, which is what is tested.
bool system_populates() {
#ifdef MADV_POPULATE_WRITE
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool populates = madvise(page, page_bytes, MADV_POPULATE_WRITE) == 0;
  munmap(page, page_bytes);
  return populates;
#else
  return false;
#endif
}

struct Cache {
  explicit Cache(std::int64_t num_bytes)
      : memory(AlignedBuffer::allocate(num_bytes).value()), arena(num_bytes, kHeadDim) {}

  void take_pages(std::int64_t num_bytes) {
    while (arena.reserved_bytes() < num_bytes) arena.allocate(kv::KvFormat::kF16, kHeadDim);
  }
  void catch_up() {
    while (ahead.is_behind()) ahead.advance();
  }
  std::int64_t resident_bytes() {
    const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
    std::vector<unsigned char> pages(static_cast<std::size_t>(memory.size_bytes() / page_bytes));
    mincore(memory.data(), static_cast<std::size_t>(memory.size_bytes()), pages.data());
    return page_bytes * std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; });
  }

  AlignedBuffer memory;
  kv::CellArena arena;
  KvPrefault ahead{memory, arena};
};

TEST(KvPrefault, StaysAPartAheadOfWhatWasTouched) {
  if (!system_populates()) GTEST_SKIP() << "this system cannot populate memory before it is touched";
  Cache cache(256 * kMiB);
  cache.catch_up();
  EXPECT_EQ(cache.ahead.ready_bytes(), 16 * kMiB);
  EXPECT_EQ(cache.resident_bytes(), 16 * kMiB);
  cache.take_pages(3 * kMiB);
  cache.catch_up();
  EXPECT_EQ(cache.ahead.ready_bytes(), 20 * kMiB) << "in whole pieces";
  EXPECT_EQ(cache.resident_bytes(), 20 * kMiB);
}

TEST(KvPrefault, LeavesOutWhatWasTouchedMeanwhile) {
  Cache cache(256 * kMiB);
  cache.catch_up();
  cache.take_pages(100 * kMiB);
  cache.ahead.advance();
  EXPECT_EQ(cache.ahead.ready_bytes(), 102 * kMiB);
}

TEST(KvPrefault, EndsWithTheMemory) {
  Cache cache(33 * kMiB);
  cache.take_pages(32 * kMiB);
  cache.catch_up();
  EXPECT_EQ(cache.ahead.ready_bytes(), 33 * kMiB);
  EXPECT_FALSE(cache.ahead.is_behind());
}

TEST(KvPrefault, KeepsWhatIsThere) {
  AlignedBuffer memory = AlignedBuffer::allocate(4 * kMiB).value();
  memory.data()[5000] = std::byte{7};
  memory.populate(4999, 4 * kMiB);
  EXPECT_EQ(memory.data()[5000], std::byte{7});
}

}  // namespace
}  // namespace kvasir::kv_prefault_test
