#include "backend/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace kvasir::backend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Below any sum that means something: what DeepSeek-V3 and GLM-4.5 add.
constexpr double kLeastScoreSum = 1e-20;

void compute_scores(const RoutingRule& rule, const float* logits, double* scores) {
  if (rule.score == RouterScore::kSigmoid) {
    for (std::int32_t e = 0; e < rule.num_experts; ++e)
      scores[e] = 1.0 / (1.0 + std::exp(-double{logits[e]}));
    return;
  }
  double max = -kInfinity;
  for (std::int32_t e = 0; e < rule.num_experts; ++e) max = std::fmax(max, logits[e]);
  double sum = 0.0;
  for (std::int32_t e = 0; e < rule.num_experts; ++e) {
    scores[e] = std::exp(logits[e] - max);
    sum += scores[e];
  }
  for (std::int32_t e = 0; e < rule.num_experts; ++e) scores[e] /= sum;
}

// The index of the greatest open value, the lower one at a tie, which is closed then.
// Requires: one is open, and no value is NaN.
std::int32_t take_best(const double* values, std::int32_t count, std::uint8_t* is_open) {
  std::int32_t best = -1;
  for (std::int32_t i = 0; i < count; ++i) {
    if (is_open[i] != 0 && (best < 0 || values[i] > values[best])) best = i;
  }
  DCHECK(best >= 0);
  is_open[best] = 0;
  return best;
}

double sum_of_best_two(const double* values, std::int32_t count) {
  double first = -kInfinity, second = -kInfinity;
  for (std::int32_t i = 0; i < count; ++i) {
    second = std::max(second, std::min(first, values[i]));
    first = std::max(first, values[i]);
  }
  return count > 1 ? first + second : first;
}

// Opens the experts of the best groups.
void open_groups(const RoutingRule& rule, const double* choice, std::uint8_t* is_open) {
  if (rule.num_groups <= 1) {
    std::fill_n(is_open, rule.num_experts, std::uint8_t{1});
    return;
  }
  std::fill_n(is_open, rule.num_experts, std::uint8_t{0});
  const std::int32_t size = rule.num_experts / rule.num_groups;
  std::array<double, kMaxExperts> totals;
  std::array<std::uint8_t, kMaxExperts> is_group_open;
  for (std::int32_t g = 0; g < rule.num_groups; ++g) {
    totals[static_cast<std::size_t>(g)] = sum_of_best_two(choice + g * size, size);
    is_group_open[static_cast<std::size_t>(g)] = 1;
  }
  for (std::int32_t i = 0; i < rule.num_used_groups; ++i) {
    const std::int32_t group = take_best(totals.data(), rule.num_groups, is_group_open.data());
    std::fill_n(is_open + group * size, size, std::uint8_t{1});
  }
}

}  // namespace

void route_row(const RoutingRule& rule, const float* logits, const float* choice_bias, std::int32_t* experts,
               float* weights) {
  std::array<double, kMaxExperts> scores, choice;
  compute_scores(rule, logits, scores.data());
  // Both scores grow with the logit. Logits alone tell apart what a score may round to the same.
  const bool chooses_by_score = choice_bias != nullptr || rule.num_groups > 1;
  for (std::int32_t e = 0; e < rule.num_experts; ++e) {
    const auto i = static_cast<std::size_t>(e);
    choice[i] = chooses_by_score ? scores[i] : double{logits[e]};
    if (choice_bias != nullptr) choice[i] += choice_bias[e];
    if (std::isnan(choice[i])) choice[i] = -kInfinity;
  }
  std::array<std::uint8_t, kMaxExperts> is_open;
  open_groups(rule, choice.data(), is_open.data());
  for (std::int32_t i = 0; i < rule.num_used; ++i) {
    experts[i] = take_best(choice.data(), rule.num_experts, is_open.data());
  }
  std::sort(experts, experts + rule.num_used);

  double sum = rule.score == RouterScore::kSigmoid ? kLeastScoreSum : 0.0;
  for (std::int32_t i = 0; i < rule.num_used; ++i) sum += scores[static_cast<std::size_t>(experts[i])];
  const double factor = rule.renormalizes ? rule.weight_scale / sum : rule.weight_scale;
  for (std::int32_t i = 0; i < rule.num_used; ++i) {
    weights[i] = static_cast<float>(scores[static_cast<std::size_t>(experts[i])] * factor);
  }
}

}  // namespace kvasir::backend
