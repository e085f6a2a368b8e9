#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>

#include "eval/scoring.h"

namespace kvasir::eval {

void PerplexitySum::add(double nll) {
  ++num_tokens_;
  sum_ += nll;
  sum_of_squares_ += nll * nll;
}

Perplexity PerplexitySum::result() const {
  Perplexity result;
  result.num_tokens = num_tokens_;
  result.nll_sum = sum_;
  if (num_tokens_ == 0) return result;
  const auto n = static_cast<double>(num_tokens_);
  const double mean = sum_ / n;
  result.ppl = std::exp(mean);
  if (num_tokens_ > 1) {
    const double variance = std::max(0.0, sum_of_squares_ / n - mean * mean);
    result.stderr_ppl = result.ppl * std::sqrt(variance / (n - 1.0));
  }
  return result;
}

Result<Perplexity> measure_perplexity(Engine& engine, std::span<const std::vector<TokenId>> windows,
                                      const PerplexityProgress& progress) {
  PerplexitySum sum;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    KVASIR_TRY(const std::vector<float> logprobs, score_prompt(engine, windows[i]));
    for (std::size_t t = windows[i].size() / 2 + 1; t < logprobs.size(); ++t) sum.add(-double{logprobs[t]});
    if (progress) progress(i + 1, sum.result());
  }
  return sum.result();
}

}  // namespace kvasir::eval
