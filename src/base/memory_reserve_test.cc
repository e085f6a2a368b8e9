#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace kvasir {
namespace {

// The process may have what it has, and `bytes` more.
class AddressLimit {
 public:
  explicit AddressLimit(std::size_t bytes) {
    std::size_t num_pages = 0;
    std::ifstream("/proc/self/statm") >> num_pages;
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{.rlim_cur = num_pages * 4096 + bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

// More than the allocator has left of what it was given.
std::unique_ptr<char[]> allocate() { return std::unique_ptr<char[]>(new (std::nothrow) char[256 << 10]); }

TEST(MemoryReserve, HasWhatASystemWithoutMemoryDoesNotGive) {
  MemoryReserve reserve(std::chrono::milliseconds(50));
  ASSERT_TRUE(reserve.is_full());
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(1000);
  {
    const AddressLimit limit(0);
    {
      const MemoryReserve::Spared spared;
      while (taken.size() < 1000 && (taken.emplace_back(allocate()) != nullptr)) continue;
      EXPECT_EQ(taken.back(), nullptr);
      EXPECT_TRUE(reserve.is_full());
    }
    EXPECT_NE(allocate(), nullptr);
    EXPECT_FALSE(reserve.is_full());
    while (taken.size() < 1000 && (taken.emplace_back(allocate()) != nullptr)) continue;
    EXPECT_EQ(taken.back(), nullptr) << "it has an end";
  }
  taken.clear();
  reserve.refill();
  EXPECT_TRUE(reserve.is_full());
}

}  // namespace
}  // namespace kvasir
