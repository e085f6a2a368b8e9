#include "kernels/byte_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/every_isa.h"

namespace kvasir::kernels::byte_columns_test {
namespace {

constexpr float kUntouched = 12345.0f;

struct Shape {
  std::int64_t k, num_rows;
  std::int32_t num_tokens;
  bool accumulate;
};

// Ragged in everything: a rank's few inputs, a hidden state's, and what is no multiple of the four chains.
constexpr Shape kShapes[] = {{16, 33, 1, true},  {16, 576, 3, true},  {576, 16, 1, false},  {1537, 48, 5, false}, {1, 1, 1, false},
                             {3, 17, 2, true},   {64, 100, 7, true},  {30, 16, 130, false}, {2048, 16, 4, false}, {18, 15, 9, false}};

class ByteColumnsTest : public EveryIsa {
 protected:
  void make(const Shape& shape) {
    std::mt19937 random(static_cast<std::uint32_t>(shape.k * 1000 + shape.num_rows));
    std::normal_distribution<float> normal;
    weights_.resize(static_cast<std::size_t>(shape.k * shape.num_rows));
    x_.resize(static_cast<std::size_t>(shape.k * shape.num_tokens));
    for (float& weight : weights_) weight = 0.02f * normal(random);
    for (float& input : x_) input = normal(random);
    if (shape.num_rows > 3) std::fill_n(weights_.begin() + 2 * shape.k, shape.k, 0.0f);  // a row without a scale
  }
  std::vector<float> run(const Shape& shape, const KernelTable& isa) {
    const FormatKernels& kernels = isa.byte_columns;
    const std::int64_t group_bytes = kernels.packed_group_bytes(shape.k);
    const std::int64_t num_groups = (shape.num_rows + kRowsPerGroup - 1) / kRowsPerGroup;
    std::vector<std::max_align_t> room(static_cast<std::size_t>(num_groups * group_bytes) / sizeof(std::max_align_t) + 8);
    auto* packed = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(room.data()) + 63) / 64 * 64);
    for (std::int64_t group = 0; group < num_groups; ++group) {
      const std::int64_t row = group * kRowsPerGroup;
      kernels.pack_group(weights_.data() + row * shape.k, shape.k * std::int64_t{sizeof(float)},
                         static_cast<int>(std::min<std::int64_t>(kRowsPerGroup, shape.num_rows - row)), shape.k, packed + group * group_bytes);
    }
    std::vector<float> out(static_cast<std::size_t>(shape.num_tokens * shape.num_rows), kUntouched);
    kernels.matmul({.weights = packed, .k = shape.k, .num_rows = shape.num_rows, .group_end = num_groups, .x = x_.data(),
                    .num_tokens = shape.num_tokens, .out = out.data(), .out_stride = shape.num_rows, .accumulate = shape.accumulate});
    return out;
  }
  double exact(const Shape& shape, std::int64_t row, std::int64_t token) const {
    double sum = 0.0;
    for (std::int64_t i = 0; i < shape.k; ++i) {
      sum += double{weights_[static_cast<std::size_t>(row * shape.k + i)]} * x_[static_cast<std::size_t>(token * shape.k + i)];
    }
    return sum;
  }

  std::vector<float> weights_, x_;
};
INSTANTIATE_TEST_SUITE_P(Isa, ByteColumnsTest, testing::ValuesIn(host_tables()), isa_name);

TEST_P(ByteColumnsTest, GivesTheBitsOfTheScalarReference) {
  for (const Shape& shape : kShapes) {
    make(shape);
    const std::vector<float> expected = run(shape, *find_table("ref")), out = run(shape, table());
    ASSERT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0) << shape.k << " inputs, " << shape.num_rows << " rows";
  }
}

// A weight is rounded by at most half of a code, that is 1/254 of its row's greatest.
TEST_P(ByteColumnsTest, StaysNearTheProductOfFloats) {
  for (const Shape& shape : kShapes) {
    make(shape);
    const std::vector<float> out = run(shape, table());
    for (std::int64_t token = 0; token < shape.num_tokens; ++token) {
      for (std::int64_t row = 0; row < shape.num_rows; ++row) {
        double greatest = 0.0, inputs = 0.0;
        for (std::int64_t i = 0; i < shape.k; ++i) {
          greatest = std::max(greatest, std::abs(double{weights_[static_cast<std::size_t>(row * shape.k + i)]}));
          inputs += std::abs(double{x_[static_cast<std::size_t>(token * shape.k + i)]});
        }
        const double got = double{out[static_cast<std::size_t>(token * shape.num_rows + row)]} - (shape.accumulate ? double{kUntouched} : 0.0);
        // Behind 12345 a float has steps of 0.001.
        EXPECT_NEAR(got, exact(shape, row, token), greatest / 254.0 * inputs * 1.001 + (shape.accumulate ? 0.001 : 1e-6));
      }
    }
  }
}

// A tile's company changes no row.
TEST_P(ByteColumnsTest, TokensAloneHaveTheSameBits) {
  const Shape together{100, 40, 7, false};
  make(together);
  const std::vector<float> out = run(together, table());
  const std::vector<float> all = x_;
  for (std::int64_t token = 0; token < together.num_tokens; ++token) {
    x_.assign(all.begin() + token * together.k, all.begin() + (token + 1) * together.k);
    const std::vector<float> alone = run({together.k, together.num_rows, 1, false}, table());
    EXPECT_EQ(std::memcmp(alone.data(), out.data() + token * together.num_rows, alone.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace kvasir::kernels::byte_columns_test
