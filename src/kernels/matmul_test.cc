#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/activation.h"
#include "kernels/every_isa.h"
#include "kernels/matmul_problem.h"
#include "kernels/widened.h"
#include "quant/formats.h"

namespace kvasir::kernels::matmul_test {
namespace {

constexpr float kUntouched = 12345.0f;

class Matmul : public EveryIsa {
 protected:
  std::vector<float> run(MatmulProblem& problem) const { return run(problem, table()); }
  static std::vector<float> run(MatmulProblem& problem, const KernelTable& isa) {
    const MatmulShape& shape = problem.shape();
    std::vector<float> out(static_cast<std::size_t>(shape.num_tokens * shape.num_rows), kUntouched);
    format_of(isa, shape).matmul(problem.args(isa, out.data()));
    return out;
  }
  void call(const MatmulProblem& problem, const MatmulArgs& args) const {
    format_of(table(), problem.shape()).matmul(args);
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, Matmul, testing::ValuesIn(host_tables()), isa_name);

const KernelTable& ref() { return *find_table("ref"); }

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Ragged shapes of every format: k of all kinds of remainders, rows and tokens around the tile sizes.
std::vector<MatmulShape> random_shapes(DType dtype, int count) {
  const bool has_blocks = info_of(dtype).block_elements > 1;
  std::vector<MatmulShape> shapes;
  for (int i = 0; i < count; ++i) {
    MatmulShape shape{.dtype = dtype, .seed = static_cast<std::uint32_t>(100 * static_cast<int>(dtype) + i)};
    std::mt19937 random(shape.seed);
    const std::int64_t unit = has_blocks ? info_of(dtype).block_elements : 1;
    shape.k = unit * static_cast<std::int64_t>(1 + random() % (i % 4 == 0 ? 2048 / unit : 320 / unit + 2));
    shape.num_rows = 1 + static_cast<std::int64_t>(random() % (i % 3 == 0 ? 100 : 20));
    shape.num_tokens = 1 + static_cast<std::int32_t>(random() % (i % 2 == 0 ? 8 : i % 4 == 1 ? 40 : 150));
    shapes.push_back(shape);
  }
  return shapes;
}

// `k` or the next number of inputs that the format's blocks can have.
std::int64_t whole_blocks(const DTypeInfo& info, std::int64_t k) {
  return (k + info.block_elements - 1) / info.block_elements * info.block_elements;
}

// Whether the exact mode multiplies the format by float activations.
bool reads_floats(const DTypeInfo& info) { return ref().formats[static_cast<int>(info.dtype)].reads_floats; }

// A row's weights as they are packed: a format without a unit of its own is rounded to F16.
std::vector<float> unpacked(const MatmulProblem& problem, std::int64_t row) {
  std::vector<float> weights(static_cast<std::size_t>(problem.shape().k));
  info_of(problem.shape().dtype).unpack_row(problem.weights().row(row), problem.shape().k, weights.data());
  const DTypeInfo& info = info_of(problem.shape().dtype);
  if (!problem.shape().w8a8 && info.block_elements > 1 && reads_floats(info)) {
    for (float& weight : weights) weight = half_to_float(widened_weight(weight));
  }
  return weights;
}

// Input i as the quantised row says it.
double quantised_input(const MatmulArgs& args, std::int32_t token, std::int64_t i) {
  const std::int64_t column = token % kTokensPerActivationTile;
  const ConstActivationTile tile = activation_tile(args.quantized, args.k, token - column, args.num_tokens);
  const std::int64_t at = i / 32 * tile.width + column;
  return double{tile.blocks[at].scale} * (tile.blocks[at].q[i % 32] + 128 * tile.outliers[at].q[i % 32]);
}

TEST_P(Matmul, GivesTheBitsOfTheScalarReference) {
  for (const DTypeInfo& info : kDTypeInfos) {
    for (MatmulShape shape : random_shapes(info.dtype, 12)) {
      for (const bool w8a8 : {false, true}) {
        shape.w8a8 = w8a8;
        SCOPED_TRACE(describe(shape));
        MatmulProblem problem(shape);
        const std::vector<float> expected = run(problem, ref());
        ASSERT_TRUE(same_bits(run(problem), expected));
      }
    }
  }
}

// The fast mode rounds weights and activations to 1/127 of the largest of 256.
TEST_P(Matmul, W8a8StaysNearTheExactDot) {
  for (const DTypeInfo& info : kDTypeInfos) {
    if (info.block_elements == 1) continue;
    MatmulShape shape{
        .dtype = info.dtype, .k = 2048, .num_rows = 33, .num_tokens = 5, .seed = 6, .w8a8 = true};
    SCOPED_TRACE(describe(shape));
    MatmulProblem problem(shape);
    const std::vector<float> out = run(problem);
    double error = 0.0, magnitude = 0.0;
    for (std::int64_t row = 0; row < shape.num_rows; ++row) {
      const std::vector<float> weights = unpacked(problem, row);
      for (std::int32_t t = 0; t < shape.num_tokens; ++t) {
        double sum = 0.0;
        for (std::int64_t i = 0; i < shape.k; ++i) {
          sum += double{weights[static_cast<std::size_t>(i)]} *
                 problem.x()[static_cast<std::size_t>(t * shape.k + i)];
        }
        const double difference = out[static_cast<std::size_t>(t * shape.num_rows + row)] - sum;
        error += difference * difference;
        magnitude += sum * sum;
      }
    }
    EXPECT_LT(std::sqrt(error / magnitude), 0.05);
    EXPECT_GT(error, 0.0);
  }
}

TEST_P(Matmul, IsTheDotOfTheFilesWeightsWithTheQuantisedActivations) {
  for (const DTypeInfo& info : kDTypeInfos) {
    for (const MatmulShape& shape : random_shapes(info.dtype, 4)) {
      SCOPED_TRACE(describe(shape));
      MatmulProblem problem(shape);
      std::vector<float> out(static_cast<std::size_t>(shape.num_tokens * shape.num_rows));
      const MatmulArgs args = problem.args(table(), out.data());
      call(problem, args);
      for (std::int64_t row = 0; row < shape.num_rows; ++row) {
        const std::vector<float> weights = unpacked(problem, row);
        for (std::int32_t t = 0; t < shape.num_tokens; ++t) {
          double sum = 0.0, magnitude = 0.0;
          for (std::int64_t i = 0; i < shape.k; ++i) {
            const double x = reads_floats(info)
                                 ? double{problem.x()[static_cast<std::size_t>(t * shape.k + i)]}
                                 : quantised_input(args, t, i);
            sum += weights[static_cast<std::size_t>(i)] * x;
            magnitude += std::abs(weights[static_cast<std::size_t>(i)] * x);
          }
          // A handful of roundings for each of the blocks' terms; codes with a zero point or a minimum
          // cancel.
          const double tolerance = 4e-7 * magnitude * std::sqrt(static_cast<double>(shape.k)) / 4 + 1e-6;
          ASSERT_NEAR(out[static_cast<std::size_t>(t * shape.num_rows + row)], sum, tolerance)
              << "row " << row << " token " << t;
        }
      }
    }
  }
}

TEST_P(Matmul, StaysWithinTheActivationRoundingOfTheExactDot) {
  for (const DTypeInfo& info : kDTypeInfos) {
    if (reads_floats(info)) continue;
    MatmulShape shape{.dtype = info.dtype, .k = 1024, .num_rows = 24, .num_tokens = 5, .seed = 7};
    SCOPED_TRACE(describe(shape));
    MatmulProblem problem(shape);
    const std::vector<float> out = run(problem);
    for (std::int64_t row = 0; row < shape.num_rows; ++row) {
      const std::vector<float> weights = unpacked(problem, row);
      for (std::int32_t t = 0; t < shape.num_tokens; ++t) {
        const float* x = problem.x().data() + t * shape.k;
        double sum = 0.0, bound = 0.0;
        for (std::int64_t b = 0; b < shape.k; b += 32) {
          double amax = 0.0, weight_sum = 0.0;
          for (std::int64_t i = b; i < b + 32; ++i) {
            const double weight = weights[static_cast<std::size_t>(i)];
            sum += weight * x[i];
            weight_sum += std::abs(weight);
            amax = std::max<double>(amax, std::abs(x[i]));
          }
          bound += amax / 127.0 * 0.501 * weight_sum;  // each input is off by at most half a step
        }
        ASSERT_NEAR(out[static_cast<std::size_t>(t * shape.num_rows + row)], sum, bound);
      }
    }
  }
}

// Rows [begin, begin + count) of the problem's activations, quantised as a batch of their own.
std::vector<std::byte> quantized_part(const KernelTable& isa, const MatmulProblem& problem,
                                      std::int32_t begin, std::int32_t count) {
  const std::int64_t k = problem.shape().k;
  const auto quantize = problem.shape().w8a8 ? isa.quantize_row_w8a8 : isa.quantize_row;
  std::vector<std::byte> part(static_cast<std::size_t>(isa.activation_bytes(k, count)));
  for (std::int32_t t = 0; t < count; ++t) {
    EXPECT_TRUE(quantize(problem.x().data() + (begin + t) * k, k, t, count, part.data()));
  }
  return part;
}

TEST_P(Matmul, DoesNotDependOnHowTokensAndGroupsAreSplit) {
  for (const DTypeInfo& info : kDTypeInfos) {
    const std::int64_t k = whole_blocks(info, info.block_elements == 256 ? 512 : 160);
    const std::uint32_t seed = 3;
    for (const bool w8a8 : {false, true}) {
      MatmulShape shape{
          .dtype = info.dtype, .k = k, .num_rows = 100, .num_tokens = 150, .seed = seed, .w8a8 = w8a8};
      SCOPED_TRACE(describe(shape));
      MatmulProblem problem(shape);
      const std::vector<float> whole = run(problem);
      std::vector<float> split(whole.size());
      MatmulArgs args = problem.args(table(), split.data());
      std::mt19937 random(9);
      for (std::int32_t t = 0; t < shape.num_tokens;) {
        MatmulArgs part = args;
        part.num_tokens = std::min<std::int32_t>(shape.num_tokens - t, 1 + static_cast<int>(random() % 40));
        part.x = args.x + t * k;
        const std::vector<std::byte> quantized = quantized_part(table(), problem, t, part.num_tokens);
        part.quantized = quantized.data();
        part.out = args.out + t * args.out_stride;
        for (std::int64_t group = 0; group < problem.num_groups(); group = part.group_end) {
          part.group_begin = group;
          part.group_end = std::min<std::int64_t>(problem.num_groups(),
                                                  group + 1 + static_cast<int>(random() % 3));
          call(problem, part);
        }
        t += part.num_tokens;
      }
      ASSERT_TRUE(same_bits(split, whole));
    }
  }
}

// Where a batch is cut at a multiple of the tile, the parts read the whole batch's activations.
TEST_P(Matmul, BeginsAtAnyTile) {
  for (const DTypeInfo& info : kDTypeInfos) {
    if (reads_floats(info)) continue;
    MatmulShape shape{.dtype = info.dtype, .k = 512, .num_rows = 33, .num_tokens = 150, .seed = 3};
    SCOPED_TRACE(describe(shape));
    MatmulProblem problem(shape);
    const std::vector<float> whole = run(problem);
    for (const std::int32_t begin : {16, 128, 144}) {
      std::vector<float> out(whole.size());
      MatmulArgs args = problem.args(table(), out.data());
      args.num_tokens -= begin;
      args.quantized = static_cast<const std::byte*>(args.quantized) +
                       table().activation_bytes(shape.k, begin);
      call(problem, args);
      const auto skipped = static_cast<std::ptrdiff_t>(begin * shape.num_rows);
      ASSERT_TRUE(std::equal(whole.begin() + skipped, whole.end(), out.begin()));
    }
  }
}

// Bytes that end where the address space may: reading one more is a fault.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::int64_t num_bytes) : room_((num_bytes + kPage - 1) / kPage * kPage) {
    pages_ = static_cast<char*>(mmap(nullptr, static_cast<std::size_t>(room_ + kPage), PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(pages_ + room_, kPage, PROT_NONE), 0);
    data_ = pages_ + room_ - num_bytes;
  }
  ~GuardedBytes() { munmap(pages_, static_cast<std::size_t>(room_ + kPage)); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  char* data() { return data_; }

 private:
  static constexpr std::int64_t kPage = 4096;
  std::int64_t room_;
  char* pages_;
  char* data_;
};

TEST_P(Matmul, ReadsNothingBeyondTheActivations) {
  for (const DTypeInfo& info : kDTypeInfos) {
    if (info.block_elements == 1) continue;
    for (const std::int32_t num_tokens : {1, 2, 3, 5, 7, 9, 13, 17, 64, 65, 77}) {
      for (const bool w8a8 : {false, true}) {
        const std::int64_t k = info.block_elements;
        MatmulShape shape{
            .dtype = info.dtype, .k = k, .num_rows = 50, .num_tokens = num_tokens, .w8a8 = w8a8};
        SCOPED_TRACE(describe(shape));
        std::vector<float> x(static_cast<std::size_t>(k * num_tokens), 1.0f);
        for (std::int32_t t = 0; t < num_tokens; ++t) x[static_cast<std::size_t>((t + 1) * k - 1)] = 1000.0f;
        MatmulProblem problem(shape, random_weights(info.dtype, shape.num_rows, k, 0.02f, 1), std::move(x));
        std::vector<float> out(static_cast<std::size_t>(num_tokens * shape.num_rows));
        MatmulArgs args = problem.args(table(), out.data());
        const std::int64_t num_bytes = table().activation_bytes(k, num_tokens);
        GuardedBytes guarded(num_bytes);
        std::memcpy(guarded.data(), args.quantized, static_cast<std::size_t>(num_bytes));
        args.quantized = guarded.data();
        call(problem, args);
      }
    }
  }
}

TEST_P(Matmul, AccumulatesAndLeavesEverythingElseAlone) {
  for (const DTypeInfo& info : kDTypeInfos) {
    const std::int64_t k = whole_blocks(info, 96);
    MatmulShape shape{.dtype = info.dtype, .k = k, .num_rows = 41, .num_tokens = 29, .seed = 5};
    SCOPED_TRACE(describe(shape));
    MatmulProblem problem(shape);
    const std::vector<float> product = run(problem);
    constexpr std::int64_t kStride = 50;
    std::vector<float> out(static_cast<std::size_t>(shape.num_tokens * kStride), kUntouched);
    MatmulArgs args = problem.args(table(), out.data());
    args.out_stride = kStride;
    args.accumulate = true;
    args.group_begin = 1;
    call(problem, args);
    for (std::int32_t t = 0; t < shape.num_tokens; ++t) {
      for (std::int64_t row = 0; row < kStride; ++row) {
        const bool written = row >= kRowsPerGroup && row < shape.num_rows;
        const float expected = written
                                   ? kUntouched + product[static_cast<std::size_t>(t * shape.num_rows + row)]
                                   : kUntouched;
        ASSERT_EQ(out[static_cast<std::size_t>(t * kStride + row)], expected)
            << "token " << t << " row " << row;
      }
    }
  }
}

TEST_P(Matmul, TreatsZeroActivationsAsZero) {
  for (const DTypeInfo& info : kDTypeInfos) {
    MatmulShape shape{.dtype = info.dtype, .k = 256, .num_rows = 17, .num_tokens = 3, .seed = 8};
    shape.activation_deviation = 0.0f;
    SCOPED_TRACE(describe(shape));
    MatmulProblem problem(shape);
    for (const float value : run(problem)) ASSERT_EQ(value, 0.0f);
  }
}

// A matrix whose codes are all the same byte, with scales of one.
RandomWeights weights_of_byte(const DTypeInfo& info, const MatmulShape& shape, int code_byte) {
  RandomWeights weights = random_weights(info.dtype, shape.num_rows, shape.k, 0.02f, 1);
  std::ranges::fill(weights.bytes, static_cast<char>(code_byte));
  for (std::size_t at = 0; at < weights.bytes.size(); at += static_cast<std::size_t>(info.block_bytes)) {
    for (const quant::FloatField& field : info.floats) put_float(1.0f, field, &weights.bytes[at]);
  }
  return weights;
}

// The largest codes of both signs with activations at the ends of int8: no intermediate may saturate.
TEST_P(Matmul, IsExactAtTheEndsOfTheCodes) {
  for (const DTypeInfo& info : kDTypeInfos) {
    if (reads_floats(info)) continue;
    for (const int code_byte : {0x00, 0x7f, 0x80, 0xff}) {
      for (const float sign : {1.0f, -1.0f}) {
        MatmulShape shape{.dtype = info.dtype, .k = 256, .num_rows = 16, .num_tokens = 2, .seed = 1};
        SCOPED_TRACE(describe(shape) + " code byte " + std::to_string(code_byte));
        MatmulProblem problem(shape, weights_of_byte(info, shape, code_byte),
                              std::vector<float>(2 * 256, 127.0f * sign));
        const std::vector<float> out = run(problem);
        double sum = 0.0;
        for (const float weight : unpacked(problem, 0)) sum += weight * 127.0 * sign;
        for (const float value : out) ASSERT_EQ(value, sum);
      }
    }
  }
}

// The same with the largest outlier codes in all groups of 4 of a block.
TEST_P(Matmul, HoldsTheLargestOutlierCodes) {
  constexpr std::int32_t kNumTokens = 70;  // a panel
  for (const DTypeInfo& info : kDTypeInfos) {
    if (reads_floats(info)) continue;
    for (const int code_byte : {0x00, 0x7f, 0x80, 0xff}) {
      for (const float sign : {1.0f, -1.0f}) {
        MatmulShape shape{.dtype = info.dtype, .k = 256, .num_rows = 50, .num_tokens = kNumTokens, .seed = 1};
        SCOPED_TRACE(describe(shape) + " code byte " + std::to_string(code_byte));
        std::vector<float> x(kNumTokens * 256, 0.0f);
        for (std::size_t i = 0; i < x.size(); ++i) {
          if (i % 256 < 32) x[i] = sign * (i % 2 == 0 ? 16256.0f : 16191.0f);  // 127 * 128, 126 * 128 + 63
        }
        MatmulProblem problem(shape, weights_of_byte(info, shape, code_byte), x);
        const std::vector<float> out = run(problem);
        ASSERT_TRUE(same_bits(out, run(problem, ref())));
        double sum = 0.0, magnitude = 0.0;
        const std::vector<float> weights = unpacked(problem, 0);
        for (std::size_t i = 0; i < 32; ++i) {
          sum += double{weights[i]} * x[i];
          magnitude += std::abs(double{weights[i]} * x[i]);
        }
        for (const float value : out) ASSERT_NEAR(value, sum, 4e-7 * magnitude);
      }
    }
  }
}

TEST_P(Matmul, SurvivesSubnormalAndLargestScales) {
  for (const DTypeInfo& info : kDTypeInfos) {
    for (const float deviation : {1e-6f, 2000.0f}) {
      MatmulShape shape{.dtype = info.dtype, .k = 512, .num_rows = 33, .num_tokens = 6, .seed = 4};
      shape.weight_deviation = deviation;
      for (const float activation_deviation : {1e-30f, 1e6f}) {
        shape.activation_deviation = activation_deviation;
        SCOPED_TRACE(describe(shape));
        MatmulProblem problem(shape);
        const std::vector<float> out = run(problem);
        ASSERT_TRUE(same_bits(out, run(problem, ref())));
        if (deviation < 1.0f) {
          for (const float value : out) ASSERT_TRUE(std::isfinite(value));
        }
      }
    }
  }
}

// As pack.cc does for a format that has no unit of its own.
template <class Format>
void expect_widened(const KernelTable& table) {
  const MatmulShape shape{.dtype = quant::kDTypeOf<Format>, .k = 512, .num_rows = 13, .seed = 2};
  const std::int64_t num_bytes = column_group_bytes<PackedF16>(shape.k);
  const RandomWeights weights = random_weights(shape.dtype, shape.num_rows, shape.k, 0.02f, shape.seed);
  std::vector<std::byte> expected(static_cast<std::size_t>(num_bytes)), packed(expected.size());
  std::vector<std::uint16_t> halves(static_cast<std::size_t>(shape.num_rows * shape.k));
  std::vector<float> row(static_cast<std::size_t>(shape.k));
  for (std::int64_t r = 0; r < shape.num_rows; ++r) {
    Format::unpack_row(weights.row(r), shape.k, row.data());
    for (std::int64_t i = 0; i < shape.k; ++i) {
      halves[static_cast<std::size_t>(r * shape.k + i)] = widened_weight(row[static_cast<std::size_t>(i)]);
    }
  }
  const int num_rows = static_cast<int>(shape.num_rows);
  table.formats[static_cast<int>(DType::kF16)].pack_group(halves.data(), 2 * shape.k, num_rows, shape.k,
                                                          expected.data());
  pack_widened_group<Format>(weights.row(0), weights.row_bytes(), num_rows, shape.k, packed.data());
  EXPECT_EQ(packed, expected);
}

TEST(WidenedFormats, ArePackedAsTheirRowsInF16) {
  expect_widened<quant::Q5_1>(ref());
  expect_widened<quant::Q6_K>(ref());
}

TEST(WidenedFormats, StayFinite) {
  EXPECT_EQ(half_to_float(widened_weight(1e9f)), 65504.0f);
  EXPECT_EQ(half_to_float(widened_weight(-65530.0f)), -65504.0f);
  EXPECT_EQ(half_to_float(widened_weight(0.1f)), 0x1.998p-4f);
}

TEST(PackedGroups, AreWholeCacheLines) {
  for (const DTypeInfo& info : kDTypeInfos) {
    for (std::int64_t blocks = 1; blocks < 9; ++blocks) {
      const std::int64_t k = blocks * info.block_elements;
      EXPECT_EQ(ref().formats[static_cast<int>(info.dtype)].packed_group_bytes(k) % 64, 0) << info.name << k;
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::matmul_test
