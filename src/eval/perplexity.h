// Perplexity of a text, window by window.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::eval {

struct Perplexity {
  double ppl = 0.0;
  double stderr_ppl = 0.0;  // standard error, from the spread of the token losses
  std::int64_t num_tokens = 0;
  double nll_sum = 0.0;  // nats
};

// Adds up token losses (nats).
class PerplexitySum {
 public:
  void add(double nll);
  Perplexity result() const;

 private:
  std::int64_t num_tokens_ = 0;
  double sum_ = 0.0;
  double sum_of_squares_ = 0.0;
};

// After each window: how many are done, and the figure so far.
using PerplexityProgress = std::function<void(std::size_t done, const Perplexity& so_far)>;

// Scores the second half of each window, so that every scored token has at least half a window of context
// (the protocol of llama.cpp's perplexity tool). Windows have two tokens or more.
Result<Perplexity> measure_perplexity(Engine& engine, std::span<const std::vector<TokenId>> windows,
                                      const PerplexityProgress& progress = {});

}  // namespace kvasir::eval
