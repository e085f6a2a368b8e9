#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace kvasir::nearest_name_test {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"temperature", "top_p", "top_k", "stop"};

TEST(NearestName, FindsDroppedSwappedAndWrongLetters) {
  EXPECT_EQ(nearest_name("temperture", kNames), "temperature");
  EXPECT_EQ(nearest_name("tpo_p", kNames), "top_p");
  EXPECT_EQ(nearest_name("top_j", kNames), "top_p");
  EXPECT_EQ(nearest_name("stp", kNames), "stop");
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("frequency", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name(std::string(1000, 'x'), kNames), "");
}

}  // namespace
}  // namespace kvasir::nearest_name_test
