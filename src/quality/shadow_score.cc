#include "quality/shadow_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvasir::quality {
namespace {

const TokenLogprob* find(const PositionLogprobs& at, TokenId token) {
  if (at.chosen.token == token) return &at.chosen;
  const auto found = std::ranges::find(at.top, token, &TokenLogprob::token);
  return found == at.top.end() ? nullptr : &*found;
}

double divergence_at(const PositionLogprobs& served, const PositionLogprobs& exact) {
  double kl = 0.0, p_named = 0.0, q_named = 0.0;
  const auto add = [&](const TokenLogprob& of_served) {
    const TokenLogprob* const of_exact = find(exact, of_served.token);
    if (of_exact == nullptr) return;
    const double p = std::exp(double{of_exact->logprob}), q = std::exp(double{of_served.logprob});
    kl += p * (double{of_exact->logprob} - double{of_served.logprob});
    p_named += p;
    q_named += q;
  };
  for (const TokenLogprob& top : served.top) add(top);
  if (std::ranges::find(served.top, served.chosen.token, &TokenLogprob::token) == served.top.end()) add(served.chosen);
  constexpr double kLeast = 1e-9;  // below it sums of floats say nothing
  const double p_rest = std::max(kLeast, 1.0 - p_named), q_rest = std::max(kLeast, 1.0 - q_named);
  return std::max(0.0, kl + p_rest * std::log(p_rest / q_rest));
}

}  // namespace

Result<ShadowScore> score_shadow(std::span<const PositionLogprobs> served, std::span<const PositionLogprobs> exact) {
  if (served.size() != exact.size() || served.empty()) {
    return make_error(ErrorKind::kUnmet, fmt::format("shadow: {} tokens were served, {} scored", served.size(), exact.size()));
  }
  ShadowScore score{.num_tokens = std::ssize(served)};
  for (std::size_t i = 0; i < served.size(); ++i) {
    if (served[i].chosen.token != exact[i].chosen.token || served[i].top.empty() || exact[i].top.empty()) {
      return make_error(ErrorKind::kUnmet, fmt::format("shadow: token {} of the answer is another one than was scored", i));
    }
    score.kl += divergence_at(served[i], exact[i]) / static_cast<double>(served.size());
    score.log_ratio += (double{served[i].chosen.logprob} - double{exact[i].chosen.logprob}) / static_cast<double>(served.size());
    score.num_agreed += served[i].top.front().token == exact[i].top.front().token;
  }
  return score;
}

}  // namespace kvasir::quality
