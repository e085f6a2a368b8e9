#include "quant/encode/group_rounding.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kvasir::quant::group_rounding_test {
namespace {

using Round = GroupScale (*)(const float*, std::int64_t, int, std::int16_t*);

std::vector<std::int16_t> codes_of(Round round, const std::vector<float>& x, int bits, GroupScale& scale) {
  std::vector<std::int16_t> codes(x.size(), 99);
  scale = round(x.data(), std::ssize(x), bits, codes.data());
  return codes;
}

TEST(GroupRounding, SymmetricLevelsReachTheLargestMagnitude) {
  GroupScale scale;
  EXPECT_EQ(codes_of(round_symmetric, {-6.0f, 1.0f, 2.9f, 5.0f}, 3, scale), (std::vector<std::int16_t>{-3, 0, 1, 2}));
  EXPECT_EQ(scale.scale, 2.0f);
  EXPECT_EQ(scale.min, 0.0f);
  EXPECT_EQ(codes_of(round_symmetric, {0.0f, 0.0f}, 4, scale), (std::vector<std::int16_t>{0, 0}));
  EXPECT_EQ(scale.scale, 0.0f);
}

TEST(GroupRounding, OneBitIsASign) {
  GroupScale scale;
  EXPECT_EQ(codes_of(round_symmetric, {-1.0f, 3.0f, 0.0f, -4.0f}, 1, scale), (std::vector<std::int16_t>{-1, 1, 1, -1}));
  EXPECT_EQ(scale.scale, 2.0f);
}

TEST(GroupRounding, OtherLevelsReachFromTheLeastNumberToTheLargest) {
  GroupScale scale;
  EXPECT_EQ(codes_of(round_asymmetric, {2.0f, 8.0f, 3.1f, 5.0f}, 2, scale), (std::vector<std::int16_t>{0, 3, 1, 2}));
  EXPECT_EQ(scale.scale, 2.0f);
  EXPECT_EQ(scale.min, 2.0f);
  EXPECT_EQ(codes_of(round_asymmetric, {7.0f, 7.0f}, 8, scale), (std::vector<std::int16_t>{0, 0}));
  EXPECT_EQ(scale.scale, 0.0f);
  EXPECT_EQ(scale.min, 7.0f);
}

TEST(GroupRounding, TheLargestFloatsHaveAScale) {
  GroupScale scale;
  EXPECT_EQ(codes_of(round_asymmetric, {-FLT_MAX, FLT_MAX}, 8, scale).front(), 0);
  EXPECT_TRUE(std::isfinite(scale.scale));
}

}  // namespace
}  // namespace kvasir::quant::group_rounding_test
