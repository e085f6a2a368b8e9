// Perplexity of a text, window by window.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/scoring.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

struct Perplexity {
  double ppl = 0.0;
  double stderr_ppl = 0.0;  // standard error, from the spread of the token losses
  std::int64_t num_tokens = 0;
  double nll_sum = 0.0;         // nats
  std::size_t num_windows = 0;  // scored; fewer than given when asked to stop
  double kv_bytes_share = 1.0;  // mean over the windows of Usage::kv_bytes_share
};

// Adds up token losses (nats).
class PerplexitySum {
 public:
  void add(double nll);
  void end_window(double kv_bytes_share) {
    ++num_windows_;
    kv_bytes_shares_ += kv_bytes_share;
  }
  Perplexity result() const;

 private:
  std::int64_t num_tokens_ = 0;
  double sum_ = 0.0;
  double sum_of_squares_ = 0.0;
  std::size_t num_windows_ = 0;
  double kv_bytes_shares_ = 0.0;
};

// After each window: the figure so far.
using PerplexityProgress = std::function<void(const Perplexity& so_far)>;

// Scores the second half of each window, so that every scored token has at least half a window of context
// (the protocol of llama.cpp's perplexity tool). Windows have two tokens or more. A KV policy is live: what
// it did to the cells of one step is what the next one reads. When `keep_going` says no, the figure over the
// windows done so far comes back.
Result<Perplexity> measure_perplexity(Engine& engine, std::span<const std::vector<TokenId>> windows,
                                      const KvParams& kv, const PerplexityProgress& progress = {},
                                      const KeepGoing& keep_going = {});

}  // namespace kvasir::eval
