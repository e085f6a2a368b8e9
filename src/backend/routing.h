// Which experts of a mixture a row goes to, and what each one's output counts (Shazeer et al. 2017).
#pragma once

#include <cstdint>

namespace kvasir::backend {

// Far above any published model. A row's scores lie on the stack.
inline constexpr std::int32_t kMaxExperts = 1024;

enum class RouterScore : std::uint8_t {
  kSoftmax,  // over all experts
  kSigmoid,
};

struct RoutingRule {
  std::int32_t num_experts = 0;  // at most kMaxExperts
  std::int32_t num_used = 0;     // by each row, at most num_experts
  RouterScore score = RouterScore::kSoftmax;
  bool renormalizes = false;  // the weights of a row are divided by their sum
  double weight_scale = 1.0;  // and then multiplied by this
  // Experts in groups of equal size, by id. Only the best groups serve a row. A group counts as much as its two
  // best experts together (DeepSeek-V3, 2024).
  std::int32_t num_groups = 1;
  std::int32_t num_used_groups = 1;
};

// Routes one row. `logits` are the router's, [num_experts]; `choice_bias` is added to the scores for the choice
// alone, [num_experts] or null. Writes num_used experts in ascending order and their weights.
//
// A pure function of the row: scores are doubles in a fixed order, and the lower id wins a tie. A NaN among the
// logits loses every comparison and may make a weight NaN.
void route_row(const RoutingRule& rule, const float* logits, const float* choice_bias, std::int32_t* experts,
               float* weights);

}  // namespace kvasir::backend
