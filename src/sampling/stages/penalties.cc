#include "sampling/stages/penalties.h"

#include <algorithm>
#include <cstddef>

namespace kvasir::sampling {
namespace {

constexpr std::int32_t kPenalised = -1;

// No infinity whatever the penalty, so that probabilities stay numbers.
float penalise_repetition(float logit, float penalty) {
  constexpr float kMost = 1e30f;
  return std::clamp(logit > 0.0f ? logit / penalty : logit * penalty, -kMost, kMost);
}

}  // namespace

bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f;
}

void apply_penalties(std::span<float> logits, const SamplingParams& params, std::span<const TokenId> prompt,
                     std::span<const TokenId> generated, std::vector<std::int32_t>& counts) {
  if (!has_penalties(params)) return;
  const bool repetition = params.repetition_penalty != 1.0f;
  if (!repetition) prompt = {};
  if (counts.size() < logits.size()) counts.resize(logits.size());
  const auto count_of = [&counts](TokenId token) -> std::int32_t& {
    return counts[static_cast<std::size_t>(token)];
  };

  for (const TokenId token : generated) ++count_of(token);
  for (const TokenId token : generated) {
    std::int32_t& count = count_of(token);
    if (count == kPenalised) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    if (repetition) logit = penalise_repetition(logit, params.repetition_penalty);
    logit -= params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
    count = kPenalised;
  }
  for (const TokenId token : prompt) {
    std::int32_t& count = count_of(token);
    if (count == kPenalised) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = penalise_repetition(logit, params.repetition_penalty);
    count = kPenalised;
  }
  for (const TokenId token : generated) count_of(token) = 0;
  for (const TokenId token : prompt) count_of(token) = 0;
}

}  // namespace kvasir::sampling
