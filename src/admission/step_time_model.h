// How long a step will take, learned from those that ran.
#pragma once

#include <array>
#include <cstdint>

#include "admission/step_work.h"

namespace kvasir::admission {

// A step takes w0 + w1 num_decoding + w2 num_chunk_tokens + w3 num_attended_tokens + w4 num_draft_tokens +
// w5 num_prompt_logits_rows milliseconds, with weights of at least 0: least squares of the relative error
// with a memory of about 200 steps, by coordinate descent from the last weights, so that those of which
// nothing new is known stay. Layers with a window attend to less than is counted; that is in w3.
//
// Thread safety: none.
class StepTimeModel {
 public:
  // A step with this work took so long. Steps that took no time (a simulated clock) teach nothing.
  void observe(const StepWork& work, double milliseconds);
  // 0 until something was observed.
  double predict_ms(const StepWork& work) const;
  // The time of a key that a prompt's token reads, over the time of the token itself; 0 when unknown.
  double key_to_token_ratio() const;
  // The most tokens of a prompt, from `first_position` on, with which a step that has this work besides takes
  // at most `limit_ms`; at most `max_tokens`.
  std::int32_t chunk_within(double limit_ms, const StepWork& work, std::int32_t first_position,
                            std::int32_t max_tokens) const;

 private:
  static constexpr std::size_t kNumWeights = 6;
  using Row = std::array<double, kNumWeights>;
  static Row features(const StepWork& work);

  void descend();

  Row weights_{};
  std::array<Row, kNumWeights> moments_{};  // sums of products of two features, the oldest forgotten
  Row sums_{};                              // and of features
};

}  // namespace kvasir::admission
