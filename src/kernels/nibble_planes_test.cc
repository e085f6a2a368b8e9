#include "kernels/nibble_planes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "kernels/every_isa.h"
#include "kernels/matmul_problem.h"

namespace kvasir::kernels::nibble_planes_test {
namespace {

// A matrix of Q8_0 in both packings, and quantised rows that meet it.
class NibblePlaneProblem {
 public:
  NibblePlaneProblem(const KernelTable& table, MatmulProblem problem)
      : planes_(table.nibble_planes), problem_(std::move(problem)) {
    const MatmulShape& shape = problem_.shape();
    const std::int64_t high_bytes = planes_.high_group_bytes(shape.k),
                       low_bytes = planes_.low_group_bytes(shape.k);
    const auto num_groups = static_cast<std::size_t>(problem_.num_groups());
    high_.resize(num_groups * static_cast<std::size_t>(high_bytes) / sizeof(PackedHighPlane));
    low_.resize(num_groups * static_cast<std::size_t>(low_bytes) / sizeof(PackedLowPlane));
    for (std::int64_t group = 0; group < problem_.num_groups(); ++group) {
      const std::int64_t row = group * kRowsPerGroup;
      planes_.pack_group(problem_.weights().row(row), problem_.weights().row_bytes(),
                         static_cast<int>(std::min<std::int64_t>(kRowsPerGroup, shape.num_rows - row)),
                         shape.k, reinterpret_cast<std::byte*>(high_.data()) + group * high_bytes,
                         reinterpret_cast<std::byte*>(low_.data()) + group * low_bytes);
    }
    whole_.resize(static_cast<std::size_t>(shape.num_tokens * shape.num_rows));
    args_ = problem_.args(table, whole_.data());
    table.formats[static_cast<int>(DType::kQ8_0)].matmul(args_);
  }

  const MatmulShape& shape() const { return problem_.shape(); }
  // The logits of the other packing: [num_tokens, num_rows].
  const std::vector<float>& logits() const { return whole_; }
  float logit(std::int32_t token, std::int64_t row) const {
    return whole_[static_cast<std::size_t>(token * shape().num_rows + row)];
  }

  std::vector<float> plane_logits() {
    std::vector<float> out(whole_.size());
    MatmulArgs args = args_;
    args.weights = high_.data();
    args.low_weights = low_.data();
    args.out = out.data();
    planes_.matmul(args);
    return out;
  }

  struct Bounds {
    std::vector<float> estimate, slack, upper, lower;
  };
  Bounds bounds(std::int32_t token, bool refined) {
    const auto num_groups = static_cast<std::size_t>(problem_.num_groups());
    Bounds out;
    out.estimate.resize(num_groups * kRowsPerGroup);
    out.slack.resize(num_groups * kRowsPerGroup);
    out.upper.resize(num_groups);
    out.lower.resize(num_groups);
    std::vector<float> inputs(static_cast<std::size_t>(planes_.input_bytes(shape().k)) / sizeof(float));
    planes_.measure_inputs(args_.quantized, shape().k, token, shape().num_tokens, inputs.data());
    const BoundArgs args{.weights = high_.data(),
                         .low_weights = low_.data(),
                         .k = shape().k,
                         .num_rows = shape().num_rows,
                         .group_begin = 0,
                         .group_end = problem_.num_groups(),
                         .quantized = args_.quantized,
                         .token = token,
                         .num_tokens = shape().num_tokens,
                         .inputs = inputs.data(),
                         .estimate = out.estimate.data(),
                         .slack = out.slack.data(),
                         .upper = out.upper.data(),
                         .lower = out.lower.data()};
    planes_.bound(args);
    if (refined) planes_.prefetch_refine(args);
    if (refined) planes_.refine(args);
    return out;
  }

 private:
  const NibblePlaneKernels& planes_;
  MatmulProblem problem_;
  std::vector<PackedHighPlane> high_;
  std::vector<PackedLowPlane> low_;
  std::vector<float> whole_;
  MatmulArgs args_;
};

class NibblePlanes : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, NibblePlanes, testing::ValuesIn(host_tables()), isa_name);

std::vector<MatmulShape> random_shapes() {
  std::vector<MatmulShape> shapes;
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    shapes.push_back({.dtype = DType::kQ8_0,
                      .k = 32 * static_cast<std::int64_t>(1 + random() % (seed % 4 == 0 ? 64 : 9)),
                      .num_rows = static_cast<std::int64_t>(1 + random() % 150),
                      .num_tokens = static_cast<std::int32_t>(1 + random() % (seed % 3 == 0 ? 100 : 6)),
                      .seed = seed});
  }
  return shapes;
}

// Every logit lies within its bounds, and a group's bounds are those of its rows.
void expect_sound(NibblePlaneProblem& problem) {
  for (std::int32_t token = 0; token < problem.shape().num_tokens; ++token) {
    for (const bool refined : {false, true}) {
      const NibblePlaneProblem::Bounds bounds = problem.bounds(token, refined);
      for (std::size_t group = 0; group < bounds.upper.size(); ++group) {
        const auto first = static_cast<std::int64_t>(group) * kRowsPerGroup;
        const std::int64_t end = std::min<std::int64_t>(problem.shape().num_rows, first + kRowsPerGroup);
        float greatest = -INFINITY;
        for (std::int64_t row = first; row < end; ++row) {
          const float logit = problem.logit(token, row);
          const auto i = static_cast<std::size_t>(row);
          greatest = std::max(greatest, logit);
          if (!std::isfinite(bounds.slack[i]) || !std::isfinite(bounds.estimate[i])) continue;
          ASSERT_LE(logit, bounds.estimate[i] + bounds.slack[i]) << "row " << row << " refined " << refined;
          ASSERT_GE(logit, bounds.estimate[i] - bounds.slack[i]) << "row " << row << " refined " << refined;
          ASSERT_GE(bounds.upper[group], bounds.estimate[i] + bounds.slack[i]);
        }
        ASSERT_LE(greatest, bounds.upper[group]) << "group " << group << " refined " << refined;
        ASSERT_GE(greatest, bounds.lower[group]) << "group " << group << " refined " << refined;
      }
    }
  }
}

TEST_P(NibblePlanes, GivesTheBitsOfTheOtherPacking) {
  for (const MatmulShape& shape : random_shapes()) {
    SCOPED_TRACE(describe(shape));
    NibblePlaneProblem problem(table(), MatmulProblem(shape));
    const std::vector<float> planes = problem.plane_logits();
    ASSERT_EQ(std::memcmp(planes.data(), problem.logits().data(), planes.size() * sizeof(float)), 0);
  }
}

TEST_P(NibblePlanes, BoundsHoldEveryLogit) {
  for (const MatmulShape& shape : random_shapes()) {
    SCOPED_TRACE(describe(shape));
    NibblePlaneProblem problem(table(), MatmulProblem(shape));
    expect_sound(problem);
  }
}

// Where the low nibbles are all 7 or 8 a bound is narrowest, and all 0 or 15 it is widest.
TEST_P(NibblePlanes, BoundsHoldAtTheEndsOfTheCodes) {
  for (const int code_byte : {0x00, 0x07, 0x08, 0x0f, 0x70, 0x7f, 0x80, 0x87, 0xf8, 0xff}) {
    for (const float scale : {1.0f, -1.0f, 0.0f, 6e-8f, 60000.0f}) {
      for (const float sign : {1.0f, -1.0f}) {
        const MatmulShape shape{.dtype = DType::kQ8_0, .k = 2048, .num_rows = 20, .num_tokens = 1};
        RandomWeights weights = random_weights(shape.dtype, shape.num_rows, shape.k, 0.02f, 1);
        std::ranges::fill(weights.bytes, static_cast<char>(code_byte));
        const std::uint16_t half = float_to_half(scale);
        for (std::size_t at = 0; at < weights.bytes.size(); at += 34)
          std::memcpy(&weights.bytes[at], &half, 2);
        std::vector<float> x(2048);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = sign * (1.0f + static_cast<float>(i % 97) * 0.37f);
        SCOPED_TRACE("code byte " + std::to_string(code_byte) + " scale " + std::to_string(scale));
        NibblePlaneProblem problem(table(), MatmulProblem(shape, std::move(weights), std::move(x)));
        expect_sound(problem);
      }
    }
  }
}

TEST_P(NibblePlanes, BoundsHoldForInputsOfAnySize) {
  for (const float deviation : {0.0f, 1e-30f, 1e-6f, 1e6f, 1e28f}) {
    for (const float weight_deviation : {1e-6f, 0.02f, 2000.0f}) {
      const MatmulShape shape{.dtype = DType::kQ8_0,
                              .k = 576,
                              .num_rows = 70,
                              .num_tokens = 3,
                              .seed = 5,
                              .weight_deviation = weight_deviation,
                              .activation_deviation = deviation};
      SCOPED_TRACE(describe(shape));
      NibblePlaneProblem problem(table(), MatmulProblem(shape));
      expect_sound(problem);
    }
  }
}

// A sum that overflows on its way says nothing of where it would have ended.
TEST_P(NibblePlanes, BoundsHoldWhereTheEstimateOverflows) {
  const MatmulShape shape{.dtype = DType::kQ8_0, .k = 17 * 32, .num_rows = 20, .num_tokens = 1};
  RandomWeights weights = random_weights(shape.dtype, shape.num_rows, shape.k, 0.02f, 1);
  std::ranges::fill(weights.bytes, 0);
  const std::uint16_t largest = float_to_half(65504.0f);
  for (std::size_t b = 0; b < 17; ++b) {
    std::memcpy(&weights.bytes[34 * b], &largest, 2);
    std::memset(&weights.bytes[34 * b + 2], b < 16 ? -1 : 120, 32);
  }
  NibblePlaneProblem problem(table(),
                             MatmulProblem(shape, std::move(weights), std::vector<float>(17 * 32, 0x1p100f)));
  expect_sound(problem);
}

// A bound that holds because it is infinitely w8a8 would be no help.
TEST_P(NibblePlanes, BoundsAreNarrowAndRefiningNarrowsThem) {
  const MatmulShape shape{.dtype = DType::kQ8_0, .k = 640, .num_rows = 160, .num_tokens = 2, .seed = 3};
  NibblePlaneProblem problem(table(), MatmulProblem(shape));
  double magnitude = 0.0, slack = 0.0, refined_slack = 0.0;
  for (std::int32_t token = 0; token < shape.num_tokens; ++token) {
    const NibblePlaneProblem::Bounds bounds = problem.bounds(token, false),
                                     refined = problem.bounds(token, true);
    for (std::size_t row = 0; row < 160; ++row) {
      magnitude += std::fabs(problem.logit(token, static_cast<std::int64_t>(row)));
      slack += bounds.slack[row];
      refined_slack += refined.slack[row];
    }
  }
  EXPECT_LT(slack, 2.5 * magnitude);  // a logit is about ||w|| ||x|| / sqrt(k), the slack 0.07 ||w|| ||x||
  EXPECT_LT(refined_slack, 0.75 * slack);
}

}  // namespace
}  // namespace kvasir::kernels::nibble_planes_test
