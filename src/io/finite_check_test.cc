#include "io/finite_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace kvasir::io::finite_check_test {
namespace {

constexpr std::int64_t kRowLength = 512;
constexpr std::int64_t kNumRows = 3;

struct Matrix {
  explicit Matrix(DType dtype) {
    view.name = "w";
    view.dtype = dtype;
    view.rank = 2;
    view.shape = {kRowLength, kNumRows, 1, 1};
    // 0x38: a finite number in every 16- and 32-bit float format, whichever bytes it is read from.
    bytes.assign(static_cast<std::size_t>(view.num_bytes()), std::byte{0x38});
    view.data = bytes.data();
  }

  void set(std::int64_t row, std::int64_t byte, std::uint32_t bits, std::size_t width) {
    std::memcpy(bytes.data() + row * row_bytes(view.dtype, kRowLength) + byte, &bits, width);
  }

  std::vector<std::byte> bytes;
  TensorView view;
};

struct Place {
  DType dtype;
  std::int32_t byte_in_block;
  std::uint32_t not_a_number;
  std::size_t width = 2;
};

// Every float that the formats have.
constexpr Place kPlaces[] = {
    {DType::kF32, 0, 0x7fc00000u, 4}, {DType::kF32, 0, 0xff800000u, 4}, {DType::kF16, 0, 0x7e00u},
    {DType::kF16, 0, 0xfc00u},        {DType::kBF16, 0, 0x7f80u},       {DType::kBF16, 0, 0xffc0u},
    {DType::kQ8_0, 0, 0x7c01u},       {DType::kQ4_0, 0, 0x7c00u},       {DType::kQ4_1, 0, 0xfe00u},
    {DType::kQ4_1, 2, 0x7c00u},       {DType::kQ5_0, 0, 0x7c00u},       {DType::kQ5_1, 0, 0x7c00u},
    {DType::kQ5_1, 2, 0x7e00u},       {DType::kQ4_K, 0, 0x7c00u},       {DType::kQ4_K, 2, 0x7c00u},
    {DType::kQ5_K, 0, 0x7c00u},       {DType::kQ5_K, 2, 0x7c00u},       {DType::kQ6_K, 208, 0x7c00u},
};

TEST(CheckFinite, FindsEachFloatOfEachFormat) {
  for (const Place& place : kPlaces) {
    const DTypeInfo& format = info_of(place.dtype);
    SCOPED_TRACE(std::string(format.name) + " byte " + std::to_string(place.byte_in_block));
    Matrix matrix(place.dtype);
    ASSERT_TRUE(check_finite(matrix.view));
    const std::int64_t last_block = kRowLength / format.block_elements - 1;
    matrix.set(1, last_block * format.block_bytes + place.byte_in_block, place.not_a_number, place.width);
    const Status status = check_finite(matrix.view);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kBadFile);
    const std::string where =
        "tensor w: row 1, element " + std::to_string(last_block * format.block_elements) + ": the ";
    EXPECT_TRUE(status.error().message.starts_with(where)) << status.error().message;
    EXPECT_TRUE(check_finite(matrix.view, 0, 1));
    EXPECT_TRUE(check_finite(matrix.view, 2, 3));
    EXPECT_FALSE(check_finite(matrix.view, 1, 2));
  }
}

TEST(CheckFinite, IgnoresTheIntegersOfABlock) {
  Matrix matrix(DType::kQ6_K);
  std::ranges::fill(matrix.bytes, std::byte{0xff});
  for (std::int64_t row = 0; row < kNumRows; ++row) {
    for (std::int64_t block = 0; block < kRowLength / 256; ++block)
      matrix.set(row, block * 210 + 208, 0x3c00u, 2);
  }
  EXPECT_TRUE(check_finite(matrix.view));
}

TEST(CheckFinite, NamesValueAndKind) {
  Matrix norm(DType::kF32);
  norm.set(0, 4 * 17, 0x7f800000u, 4);
  EXPECT_EQ(check_finite(norm.view).error().message,
            "tensor w: row 0, element 17: the value is inf, weights must be finite");
  Matrix blocks(DType::kQ8_0);
  blocks.set(2, 34, 0x7e00u, 2);
  EXPECT_EQ(check_finite(blocks.view).error().message,
            "tensor w: row 2, element 32: the block scale is nan, weights must be finite");
}

}  // namespace
}  // namespace kvasir::io::finite_check_test
