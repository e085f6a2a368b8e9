#include "eval/gate/arm_divergence.h"

#include "base/check.h"
#include "eval/log_softmax.h"

namespace kvasir::eval {
namespace {

// Calls `use` with the logits at every stride-th of the positions, which come in order.
LogitsObserver at_every(const ScoredText& text, std::int32_t stride,
                        std::function<void(std::span<const float> logits)> use) {
  return [&text, stride, use = std::move(use), next = std::size_t{0}](std::int32_t position,
                                                                      std::span<const float> logits) mutable {
    if (next >= text.positions.size() || position != text.positions[next]) return;
    if (next % static_cast<std::size_t>(stride) == 0) use(logits);
    ++next;
  };
}

double mean_loss_behind(const ScoredText& text, std::span<const float> logprobs) {
  double sum = 0.0;
  for (const std::int32_t position : text.positions) sum -= double{logprobs[static_cast<std::size_t>(position) + 1]};
  return sum / static_cast<double>(text.positions.size());
}

}  // namespace

Result<ArmDivergence> compare_arms(const GateArms& arms, const ScoredText& text, std::int32_t stride) {
  CHECK(!text.positions.empty());
  std::vector<std::vector<float>> kept;
  KVASIR_TRY(const PromptScore reference,
             arms.reference.score(text.tokens, 0, at_every(text, stride, [&](std::span<const float> logits) {
               kept.push_back(log_softmax(logits));
             })));
  ArmDivergence result;
  std::size_t num_seen = 0;
  KVASIR_TRY(const PromptScore changed, arms.changed.score(text.tokens, text.policy_acts_at,
                                                           at_every(text, stride, [&](std::span<const float> logits) {
                                                             const std::vector<float> here = log_softmax(logits);
                                                             const std::vector<float>& there = kept[num_seen++];
                                                             result.kl += divergence(there, here);
                                                             result.top1 += have_same_top(there, here) ? 1.0 : 0.0;
                                                           })));
  CHECK(num_seen == kept.size());
  result.kl /= static_cast<double>(num_seen);
  result.top1 /= static_cast<double>(num_seen);
  result.nll = mean_loss_behind(text, changed.logprobs);
  result.reference_nll = mean_loss_behind(text, reference.logprobs);
  result.bytes_share = changed.kv_bytes_share;
  return result;
}

}  // namespace kvasir::eval
