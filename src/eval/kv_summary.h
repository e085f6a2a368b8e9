// The summary of a KV evaluation's rows, and whether the gate holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/kv_row.h"

namespace kvasir::eval {

// All rows of one policy and budget in one suite at one context.
struct KvSummary {
  std::string suite;
  std::int32_t ctx_tokens = 0;
  std::string policy;
  double budget = 1.0;
  std::int32_t num_items = 0;
  double bytes_share = 1.0, bytes_share_peak = 1.0;  // the mean of the means; the greatest peak
  // Perplexity relative to the full cache's: over all windows, its paired bootstrap 95% interval over windows
  // (Efron and Tibshirani 1993), and of the worst window.
  double ratio = 1.0, ratio_low = 1.0, ratio_high = 1.0, worst_ratio = 1.0;
  double kl = 0.0, top1 = 1.0;
  // Needles: that the full cache found, and how many of these are still found.
  std::int32_t full_found = 0, still_found = 0;

  bool is_text() const { return suite.starts_with("p"); }
};

// In the order of suite, context, policy and falling budget.
std::vector<KvSummary> summarise(std::span<const KvRow> rows);

// One thing that the gate asks for.
struct KvClaim {
  std::string text;  // names the case, the limit and the value
  bool holds = false;
};

// Per suite, context and budget: the upper end of the ratio's interval at most 1.01 at 40% of the bytes and
// more, 1.02 at 30%; no window above 1.05; 95% of the needles that the full cache finds at 25% and more, of
// at least 20 of a kind; the bytes within the budget; at least 20 windows of 2048 tokens and 6 of 4096.
// Budgets below are reported, not gated.
std::vector<KvClaim> check_gate(std::span<const KvSummary> summaries);

// A claim that does not hold for each part of the gate of which the policy has no summary: p1 and p2 of 2048
// and 4096 tokens at 50, 40 and 30%, and at these and 25% each kind of needle in 1024, 2048, 4096 and 8192
// tokens, as far as a model goes that takes `max_tokens`.
std::vector<KvClaim> missing_from_gate(std::span<const KvSummary> summaries, std::string_view policy,
                                       std::int32_t max_tokens);

}  // namespace kvasir::eval
