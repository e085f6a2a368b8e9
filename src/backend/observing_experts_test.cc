// An observer sees the inputs of experts' second matrices as the definition of a gated layer has them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backend/observing/observing_backend.h"
#include "kernels/random_weights.h"
#include "kernels/table.h"

namespace kvasir::backend::observing_experts_test {
namespace {

constexpr std::int32_t kExperts = 4, kUsed = 2, kHidden = 64, kWidth = 96, kRows = 9;

class ExpertWatcher final : public InputObserver {
 public:
  void observe(std::span<const std::string_view>, std::span<const float>, std::int64_t) override {}
  void observe_expert(std::string_view name, std::int32_t expert, std::int32_t num_experts, std::span<const float> rows,
                      std::int64_t width) override {
    EXPECT_EQ(name, "down");
    EXPECT_EQ(num_experts, kExperts);
    EXPECT_EQ(width, kWidth);
    rows_of[expert].assign(rows.begin(), rows.end());
  }
  std::map<std::int32_t, std::vector<float>> rows_of;
};

std::unique_ptr<Matrix> pack(Backend& backend, const char* name, const kernels::RandomWeights& weights, std::int64_t num_rows) {
  const TensorView tensor{.name = name, .dtype = weights.dtype, .rank = 2, .shape = {weights.k, num_rows, 1, 1},
                          .data = reinterpret_cast<const std::byte*>(weights.row(0))};
  auto matrix = *backend.make_matrix(tensor, MatrixUse::kExperts);
  backend.pack_rows(tensor, 0, *matrix);
  return matrix;
}

double dot_with(const kernels::RandomWeights& weights, std::int64_t row, const float* x) {
  std::vector<float> w(kHidden);
  info_of(weights.dtype).unpack_row(reinterpret_cast<const std::byte*>(weights.row(row)), kHidden, w.data());
  double sum = 0.0;
  for (std::size_t i = 0; i < w.size(); ++i) sum += double{w[i]} * x[i];
  return sum;
}

// Matrices that read floats, and such as read bytes.
TEST(ObservingExperts, ShowsTheInputsOfEachExpertsSecondMatrix) {
  for (const DType dtype : {DType::kF32, DType::kQ8_0}) {
    ThreadPool pool(2);
    ExpertWatcher watcher;
    ObservingBackend backend(kernels::best_table(), pool, watcher);
    const auto gate = kernels::random_weights(dtype, kExperts * kWidth, kHidden, 0.1f, 1), up = kernels::random_weights(dtype, kExperts * kWidth, kHidden, 0.1f, 2),
               down = kernels::random_weights(dtype, kExperts * kHidden, kWidth, 0.1f, 3);
    const auto packed_gate = pack(backend, "gate", gate, kExperts * kWidth), packed_up = pack(backend, "up", up, kExperts * kWidth),
               packed_down = pack(backend, "down", down, kExperts * kHidden);
    const auto in = *backend.make_activation(kRows, kHidden);
    const auto experts = *backend.make_expert_rows({.max_rows = kRows, .num_experts = kExperts, .num_used = kUsed, .hidden_size = kHidden, .intermediate_size = kWidth});
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    std::vector<float> x(kRows * kHidden), logits(kRows * kExperts), out(kRows * kHidden);
    for (float& value : x) value = normal(random);
    // Row r asks for the experts r % 4 and the one behind it.
    for (std::int32_t row = 0; row < kRows; ++row) {
      for (std::int32_t i = 0; i < kUsed; ++i) logits[static_cast<std::size_t>(row * kExperts + (row + i) % kExperts)] = 5.0f;
    }
    const std::vector<TokenId> tokens(kRows);
    const BatchSequence slice{.num_rows = kRows, .num_wanted_rows = kRows};
    backend.plan({.token_ids = tokens, .sequences = {&slice, 1}}, {});
    const std::vector<float> ones(kHidden, 1.0f);
    backend.norm({.data = x.data(), .stride = kHidden, .width = kHidden}, {.kind = NormKind::kRms, .weight = ones, .eps = 1e-6f}, *in);
    backend.route({.logits = {.data = logits.data(), .stride = kExperts, .width = kExperts}, .rule = {.num_experts = kExperts, .num_used = kUsed, .renormalizes = true}}, *experts);
    const ExpertMlpOp op{.gate = {packed_gate.get()}, .up = {packed_up.get()}, .down = {packed_down.get()}, .activation = Gate::kSilu};
    backend.add_experts(op, *in, *experts, {.data = out.data(), .stride = kHidden, .width = kHidden});

    for (std::int32_t expert = 0; expert < kExperts; ++expert) {
      std::size_t at = 0;
      double off = 0.0, all = 0.0;  // squares
      const std::vector<float>& seen = watcher.rows_of[expert];
      for (std::int32_t row = 0; row < kRows; ++row) {
        if (row % kExperts != expert && (row + 1) % kExperts != expert) continue;
        std::vector<float> normed(x.begin() + row * kHidden, x.begin() + (row + 1) * kHidden);
        double squares = 0.0;
        for (const float value : normed) squares += double{value} * value;
        for (float& value : normed) value = static_cast<float>(value / std::sqrt(squares / kHidden + 1e-6));
        ASSERT_GE(seen.size(), (at + 1) * kWidth);
        for (std::int64_t i = 0; i < kWidth; ++i) {
          const double g = dot_with(gate, expert * kWidth + i, normed.data()), u = dot_with(up, expert * kWidth + i, normed.data());
          const double expected = g / (1.0 + std::exp(-g)) * u;
          off += std::pow(seen[at * kWidth + static_cast<std::size_t>(i)] - expected, 2.0);
          all += expected * expected;
        }
        ++at;
      }
      EXPECT_EQ(seen.size(), at * kWidth);
      EXPECT_LT(off, (dtype == DType::kF32 ? 1e-9 : 1e-2) * all) << name_of(dtype) << " " << expert;
    }
  }
}

}  // namespace
}  // namespace kvasir::backend::observing_experts_test
