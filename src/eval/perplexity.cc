#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>
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
  result.num_windows = num_windows_;
  if (num_windows_ > 0) result.kv_bytes_share = kv_bytes_shares_ / static_cast<double>(num_windows_);
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
                                      const KvParams& kv, const PerplexityProgress& progress,
                                      const KeepGoing& keep_going) {
  PerplexitySum sum;
  for (const std::vector<TokenId>& window : windows) {
    const auto score = score_prompt(engine, window, kv, {}, keep_going);
    if (!score && score.error().kind == ErrorKind::kCancelled) break;
    if (!score) return std::unexpected(score.error());
    const std::vector<float>& logprobs = score->logprobs;
    for (std::size_t t = window.size() / 2 + 1; t < logprobs.size(); ++t) sum.add(-double{logprobs[t]});
    sum.end_window(score->kv_bytes_share);
    if (progress) progress(sum.result());
  }
  return sum.result();
}

}  // namespace kvasir::eval
