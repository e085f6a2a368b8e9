// The door on the host: lanes, matrix products, conversions.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backend/cuda/simt/simt.h"

namespace kvasir::simt::door_test {
namespace {

void permute(const int* in, int* xored, int* from_seventh, int* any) {
  const int value = load(in + lane_index());
  store(xored + lane_index(), shuffle_xor(value, 5));
  store(from_seventh + lane_index(), shuffle(value, (lane_index() + 7) % kWarpSize));
  const bool none = any_lane(value < 0), one = any_lane(value == 17);
  store(any + lane_index(), 2 * none + one);
}

TEST(Door, LanesTakeEachOthersValues) {
  for (std::uint32_t order = 0; order < 8; ++order) {
    Device device(order);
    std::vector<int> in(kWarpSize), out(kWarpSize);
    for (int i = 0; i < kWarpSize; ++i) in[static_cast<std::size_t>(i)] = i;
    int* results[3];
    for (int*& each : results) each = device.output<int>(kWarpSize);
    launch<permute>(device, {1}, kWarpSize, 0, device.input(std::span<const int>(in)), results[0], results[1],
                    results[2]);
    ASSERT_EQ(device.error(), "");
    for (int r = 0; r < 3; ++r) {
      device.copy_out(results[r], std::span<int>(out));
      for (int i = 0; i < kWarpSize; ++i) {
        EXPECT_EQ(out[static_cast<std::size_t>(i)], r == 0 ? (i ^ 5) : r == 1 ? (i + 7) % kWarpSize : 1);
      }
    }
  }
}

// d[16][8] = a[16][k] b[8][k] + the number of the place, each lane with its part of the operands.
template <int kDepth>
void multiply(const std::int8_t* a, const std::int8_t* b, int* d) {
  const int g = lane_index() / 4, j = lane_index() % 4;
  std::uint32_t a_words[kDepth / 8], b_words[kDepth / 16];
  for (int i = 0; i < kDepth / 8; ++i) a_words[i] = load4(a + (g + i % 2 * 8) * kDepth + i / 2 * 16 + 4 * j);
  for (int i = 0; i < kDepth / 16; ++i) b_words[i] = load4(b + g * kDepth + i * 16 + 4 * j);
  std::int32_t sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = (g + i / 2 * 8) * 8 + 2 * j + i % 2;
  mma_s8(sums, a_words, b_words);
  for (int i = 0; i < 4; ++i) store(d + (g + i / 2 * 8) * 8 + 2 * j + i % 2, sums[i]);
}

template <int kDepth>
void expect_products() {
  std::mt19937 random(kDepth);
  std::vector<std::int8_t> a(16 * kDepth), b(8 * kDepth);
  for (auto& each : a) each = static_cast<std::int8_t>(random());
  for (auto& each : b) each = static_cast<std::int8_t>(random());
  Device device(3);
  int* d = device.output<int>(128);
  launch<multiply<kDepth>>(device, {1}, kWarpSize, 0, device.input(std::span<const std::int8_t>(a)),
                           device.input(std::span<const std::int8_t>(b)), d);
  ASSERT_EQ(device.error(), "");
  std::vector<int> out(128);
  device.copy_out(d, std::span<int>(out));
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int sum = row * 8 + column;
      for (int i = 0; i < kDepth; ++i) {
        sum += a[static_cast<std::size_t>(row * kDepth + i)] *
               b[static_cast<std::size_t>(column * kDepth + i)];
      }
      EXPECT_EQ(out[static_cast<std::size_t>(row * 8 + column)], sum);
    }
  }
}

TEST(Door, MatrixProductsAreExactIntegersInTheLayoutOfTheInstructions) {
  expect_products<32>();
  expect_products<16>();
}

TEST(Door, BytesAreSelectedAndMultipliedAsTheInstructionsDo) {
  EXPECT_EQ(select_bytes(0x33221100u, 0x77665544u, 0x0752u), 0x00775522u);
  EXPECT_EQ(dot4(0xff01807fu, 0x02030405u, 10), 10 + -1 * 2 + 1 * 3 + -128 * 4 + 127 * 5);
  EXPECT_EQ(round_to_int(2.5f), 2);
  EXPECT_EQ(round_to_int(-3.5f), -4);
  EXPECT_EQ(max_or_second(std::nanf(""), 1.0f), 1.0f);
  EXPECT_TRUE(std::isnan(min_or_second(1.0f, std::nanf(""))));
}

}  // namespace
}  // namespace kvasir::simt::door_test
