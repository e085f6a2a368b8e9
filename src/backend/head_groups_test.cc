// A head of which some groups of rows are computed: the same bits as those of the whole head, whatever its format.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "kernels/isa.h"
#include "kernels/random_weights.h"

namespace kvasir::backend::head_groups_test {
namespace {

constexpr std::int32_t kWidth = 512;
constexpr std::int32_t kNumLogits = 1000;  // the last group is not whole
constexpr std::int32_t kNumTiles = (kNumLogits + kLogitsPerTile - 1) / kLogitsPerTile;
constexpr float kUntouched = 12345.0f;

class Head {
 public:
  Head(const char* isa, Precision precision, DType dtype, MatrixUse use)
      : pool_(2), backend_(*kernels::find_table(isa), pool_, precision),
        weights_(kernels::random_weights(dtype, kNumLogits, kWidth, 0.02f, 5)), norm_(kWidth, 1.0f) {
    const TensorView tensor{.name = "head",
                            .dtype = dtype,
                            .rank = 2,
                            .shape = {kWidth, kNumLogits, 1, 1},
                            .data = reinterpret_cast<const std::byte*>(weights_.bytes.data())};
    matrix_ = *backend_.make_matrix(tensor, use);
    backend_.pack_rows(tensor, 0, *matrix_);
    scratch_ = *backend_.make_activation(4, kWidth);
    x_ = *backend_.make_rows(4, kWidth);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::int32_t row = 0; row < 4; ++row) {
      for (std::int32_t i = 0; i < kWidth; ++i) x_.row(row)[i] = normal(random);
      x_.row(row)[11] *= 30.0f;
    }
  }
  void set_scale(float scale) { matrix_->scales = {scale}; }

  std::vector<float> run(std::span<const std::int32_t> rows, std::span<const std::int32_t> groups = {}) {
    std::vector<float> logits(rows.size() * kNumLogits, kUntouched), maxima(rows.size() * kNumTiles);
    HeadOp op = {.x = x_,
                 .norm = {.kind = NormKind::kRms, .weight = norm_, .eps = 1e-6f},
                 .weight = matrix_.get(),
                 .logits = {.data = logits.data(), .stride = kNumLogits, .width = kNumLogits},
                 .tile_maxima = {.data = maxima.data(), .stride = kNumTiles, .width = kNumTiles},
                 .groups = groups};
    backend_.head(op, rows, *scratch_);
    return logits;
  }

 private:
  ThreadPool pool_;
  CpuBackend backend_;
  kernels::RandomWeights weights_;
  std::unique_ptr<Matrix> matrix_;
  std::unique_ptr<Activation> scratch_;
  Rows x_;
  std::vector<float> norm_;
};

void expect_same_bits(Head& head, std::span<const std::int32_t> groups) {
  const std::vector<std::int32_t> all = {0, 1, 2, 3};
  const std::vector<float> whole = head.run(all);
  for (const std::vector<std::int32_t>& rows : {std::vector<std::int32_t>{2}, {3, 0}}) {
    const std::vector<float> some = head.run(rows, groups);
    std::vector<float> expected(some.size(), kUntouched);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const std::int32_t group : groups) {
        for (std::int32_t at = group * kRowsPerGroup; at < std::min(kNumLogits, (group + 1) * kRowsPerGroup); ++at) {
          expected[i * kNumLogits + static_cast<std::size_t>(at)] =
              whole[static_cast<std::size_t>(rows[i] * kNumLogits + at)];
        }
      }
    }
    ASSERT_EQ(std::memcmp(some.data(), expected.data(), some.size() * sizeof(float)), 0);
  }
}

const std::vector<std::int32_t> kGroups = {0, 1, 2, 3, 7, 9, 30, 31, 61, 62};

TEST(HeadGroups, HaveTheBitsOfTheWholeHeadInEveryFormat) {
  for (const kernels::Isa& each : kernels::host_isas()) {
    for (int dtype = 0; dtype < kNumDTypes; ++dtype) {
      for (const Precision precision : {Precision::kExact, Precision::kFast}) {
        SCOPED_TRACE(std::string(each.table.isa) + " " + std::string(info_of(static_cast<DType>(dtype)).name));
        Head head(each.table.isa, precision, static_cast<DType>(dtype), MatrixUse::kLayer);
        expect_same_bits(head, kGroups);
      }
    }
  }
}

TEST(HeadGroups, HaveTheBitsOfTheWholeHeadInTwoPlanes) {
  for (const kernels::Isa& each : kernels::host_isas()) {
    SCOPED_TRACE(each.table.isa);
    Head head(each.table.isa, Precision::kExact, DType::kQ8_0, MatrixUse::kArgmaxHead);
    expect_same_bits(head, kGroups);
    for (const std::int32_t group : {0, 5, 62}) expect_same_bits(head, {&group, 1});
  }
}

TEST(HeadGroups, KnowTheScaleOfTheirMatrix) {
  Head head(kernels::best_table().isa, Precision::kExact, DType::kQ4_0, MatrixUse::kLayer);
  head.set_scale(0.37f);
  expect_same_bits(head, kGroups);
}

}  // namespace
}  // namespace kvasir::backend::head_groups_test
