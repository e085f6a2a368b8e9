#include "admission/step_time_model.h"

#include <algorithm>
#include <bit>

namespace kvasir::admission {
namespace {

constexpr double kForgetting = 0.995;
constexpr int kNumSweeps = 8;
// Beside the moments of a single step: what is known of a weight when none of the last steps had its work.
constexpr double kInertia = 1e-6;

}  // namespace

// In units in which the weights are of one size: a step, ten streams, a hundred tokens, a hundred thousand
// keys.
StepTimeModel::Row StepTimeModel::features(const StepWork& work) {
  return {1.0,
          work.num_decoding * 1e-1,
          work.num_chunk_tokens * 1e-2,
          static_cast<double>(work.num_attended_tokens) * 1e-5,
          work.num_draft_tokens * 1e-1,
          work.num_prompt_logits_rows * 1e-1};
}

void StepTimeModel::observe(const StepWork& work, double milliseconds) {
  if (!(milliseconds > 0.0)) return;
  Row x = features(work);
  for (double& value : x) value /= milliseconds;  // so that the error to be small is the relative one
  for (std::size_t i = 0; i < kNumWeights; ++i) {
    for (std::size_t j = 0; j < kNumWeights; ++j) {
      moments_[i][j] = kForgetting * moments_[i][j] + x[i] * x[j];
    }
    sums_[i] = kForgetting * sums_[i] + x[i];
  }
  descend();
}

void StepTimeModel::descend() {
  const Row before = weights_;
  for (int sweep = 0; sweep < kNumSweeps; ++sweep) {
    for (std::size_t i = 0; i < kNumWeights; ++i) {
      double rest = sums_[i] + kInertia * before[i];
      for (std::size_t j = 0; j < kNumWeights; ++j) rest -= i == j ? 0.0 : moments_[i][j] * weights_[j];
      weights_[i] = std::max(0.0, rest / (moments_[i][i] + kInertia));
    }
  }
}

double StepTimeModel::predict_ms(const StepWork& work) const {
  const Row x = features(work);
  double milliseconds = 0.0;
  for (std::size_t i = 0; i < kNumWeights; ++i) milliseconds += weights_[i] * x[i];
  return milliseconds;
}

double StepTimeModel::key_to_token_ratio() const {
  return weights_[2] > 0.0 ? weights_[3] * 1e-5 / (weights_[2] * 1e-2) : 0.0;
}

std::int32_t StepTimeModel::chunk_within(double limit_ms, const StepWork& work, std::int32_t first_position,
                                         std::int32_t max_tokens) const {
  std::int32_t fits = 0;
  for (std::int32_t step = std::bit_floor(static_cast<std::uint32_t>(std::max(max_tokens, 1))); step > 0;
       step /= 2) {
    if (fits + step > max_tokens) continue;
    StepWork with_chunk = work;
    with_chunk.add_chunk(first_position, fits + step);
    if (predict_ms(with_chunk) <= limit_ms) fits += step;
  }
  return fits;
}

}  // namespace kvasir::admission
