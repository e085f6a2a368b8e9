#include "base/memory_reserve.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <new>
#include <vector>

#include "base/testing/address_limit.h"

namespace kvasir {
namespace {

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
