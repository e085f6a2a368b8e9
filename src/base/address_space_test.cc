#include "base/address_space.h"

#include <gtest/gtest.h>

#include "base/testing/address_limit.h"

namespace kvasir {
namespace {

TEST(AddressSpace, SaysWhatTheLimitLeaves) {
  EXPECT_FALSE(free_address_bytes().has_value()) << "the test runs without ulimit -v";
  constexpr std::int64_t kRoomBytes = 64 << 20;
  const AddressLimit limit(kRoomBytes);
  ASSERT_TRUE(free_address_bytes().has_value());
  EXPECT_NEAR(static_cast<double>(*free_address_bytes()), static_cast<double>(kRoomBytes), 1 << 20);
}

TEST(AddressSpace, ALimitBelowWhatIsMappedLeavesNothing) {
  const AddressLimit limit(0);
  ASSERT_TRUE(free_address_bytes().has_value());
  EXPECT_LE(*free_address_bytes(), 1 << 20);
}

}  // namespace
}  // namespace kvasir
