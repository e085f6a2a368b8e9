// Cases survive their file, and a difference of one bit is seen.
#include "backend/cuda/cases/op_case.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

namespace kvasir::cuda::op_case_test {
namespace {

using Floats = std::span<const float>;

OpCase example() {
  const std::vector<float> in = {1.0f, 2.0f}, out = {0.0f, std::nanf(""), 3.0f};
  const std::vector<std::uint8_t> before = {1, 2, 3}, after = {1, 7, 3};
  OpCase op{.op = "example", .name = "two and three", .numbers = {5, -6}};
  op.add_input(Floats(in));
  op.add_output(ArrayKind::kFloats, Floats(out));
  op.add_in_out(ArrayKind::kBytes, std::span<const std::uint8_t>(before),
                std::span<const std::uint8_t>(after));
  return op;
}

std::vector<std::vector<std::byte>> expected_outputs(const OpCase& op) {
  return {op.arrays[1].expected, op.arrays[2].expected};
}

TEST(OpCase, EqualArraysDoNotDiffer) {
  const OpCase op = example();
  EXPECT_EQ(difference(op, expected_outputs(op)), "");
}

TEST(OpCase, ABitOfAFloatOrAByteIsADifference) {
  const OpCase op = example();
  auto outputs = expected_outputs(op);
  outputs[0][8] ^= std::byte{1};
  EXPECT_EQ(difference(op, outputs), "1 of 3 differ in array 1, the first is 2");
  outputs = expected_outputs(op);
  outputs[1][0] = std::byte{9};
  EXPECT_EQ(difference(op, outputs), "1 of 3 differ in array 2, the first is 0");
}

TEST(OpCase, ZerosOfTwoSignsDifferAndTwoNansDoNot) {
  const OpCase op = example();
  auto outputs = expected_outputs(op);
  const float minus_zero = -0.0f, other_nan = -std::nanf("1");
  std::memcpy(outputs[0].data() + 4, &other_nan, sizeof other_nan);
  EXPECT_EQ(difference(op, outputs), "");
  std::memcpy(outputs[0].data(), &minus_zero, sizeof minus_zero);
  EXPECT_EQ(difference(op, outputs), "1 of 3 differ in array 1, the first is 0");
}

TEST(OpCase, AFileGivesBackItsCases) {
  const std::string path = testing::TempDir() + "op_case_test.bin";
  const std::vector<OpCase> written = {example(), example()};
  ASSERT_TRUE(write_cases(path.c_str(), written));
  std::vector<OpCase> read;
  ASSERT_TRUE(read_cases(path.c_str(), read));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].op, "example");
  EXPECT_EQ(read[1].name, "two and three");
  EXPECT_EQ(read[1].numbers, written[1].numbers);
  ASSERT_EQ(read[1].arrays.size(), 3u);
  EXPECT_EQ(read[1].arrays[2].role, ArrayRole::kInOut);
  EXPECT_EQ(read[1].arrays[2].content, written[1].arrays[2].content);
  EXPECT_EQ(difference(read[1], expected_outputs(written[1])), "");
}

TEST(OpCase, ACutFileIsRefused) {
  const std::string path = testing::TempDir() + "op_case_test_cut.bin";
  ASSERT_TRUE(write_cases(path.c_str(), std::vector<OpCase>{example()}));
  std::FILE* file = std::fopen(path.c_str(), "rb+");
  ASSERT_EQ(std::fseek(file, 0, SEEK_END), 0);
  const long size = std::ftell(file);
  std::fclose(file);
  ASSERT_EQ(truncate(path.c_str(), size - 1), 0);
  std::vector<OpCase> read;
  EXPECT_FALSE(read_cases(path.c_str(), read));
  EXPECT_FALSE(read_cases("/nonexistent", read));
}

}  // namespace
}  // namespace kvasir::cuda::op_case_test
