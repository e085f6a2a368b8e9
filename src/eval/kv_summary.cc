#include "eval/kv_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <tuple>

namespace kvasir::eval {
namespace {

constexpr int kNumResamples = 10000;

// exp of the mean loss over what the full cache loses, over some windows.
double ratio_of(std::span<const KvRow* const> rows) {
  double excess = 0.0, num_tokens = 0.0;
  for (const KvRow* row : rows) {
    excess += (row->nll - row->full_nll) * row->num_tokens;
    num_tokens += row->num_tokens;
  }
  return std::exp(excess / num_tokens);
}

void add_interval(std::span<const KvRow* const> rows, KvSummary& summary) {
  std::mt19937_64 random(20260101);
  std::uniform_int_distribution<std::size_t> pick(0, rows.size() - 1);
  std::vector<double> ratios;
  std::vector<const KvRow*> sample(rows.size());
  for (int i = 0; i < kNumResamples; ++i) {
    for (const KvRow*& row : sample) row = rows[pick(random)];
    ratios.push_back(ratio_of(sample));
  }
  std::ranges::sort(ratios);
  summary.ratio_low = ratios[kNumResamples / 40];
  summary.ratio_high = ratios[kNumResamples - 1 - kNumResamples / 40];
}

KvSummary summary_of(std::span<const KvRow* const> rows) {
  const KvRow& first = *rows.front();
  KvSummary summary{.suite = first.suite, .ctx_tokens = first.ctx_tokens, .policy = first.policy};
  // No policy has run where the full cache lost the needle.
  const auto was_measured = [&](const KvRow* row) { return summary.is_text() || row->full_found != 0; };
  const auto mean = [&](double KvRow::* member) {
    double sum = 0.0, count = 0.0;
    for (const KvRow* row : rows) {
      if (!was_measured(row)) continue;
      sum += row->*member;
      ++count;
    }
    return count > 0.0 ? sum / count : 0.0;
  };
  summary.budget = first.budget;
  summary.num_items = static_cast<std::int32_t>(rows.size());
  summary.bytes_share = mean(&KvRow::bytes_share);
  summary.bytes_share_peak = 0.0;
  for (const KvRow* row : rows) {
    if (was_measured(row))
      summary.bytes_share_peak = std::max(summary.bytes_share_peak, row->bytes_share_peak);
    summary.full_found += row->full_found;
    summary.still_found += row->full_found != 0 && row->found != 0 ? 1 : 0;
    if (summary.is_text()) {
      summary.worst_ratio = std::max(summary.worst_ratio, std::exp(row->nll - row->full_nll));
    }
  }
  if (!summary.is_text()) return summary;
  summary.ratio = ratio_of(rows);
  add_interval(rows, summary);
  summary.kl = mean(&KvRow::kl);
  summary.top1 = mean(&KvRow::top1);
  return summary;
}

double ratio_limit(double budget) { return budget >= 0.4 ? 1.01 : 1.02; }

}  // namespace

std::vector<KvSummary> summarise(std::span<const KvRow> rows) {
  using Key = std::tuple<std::string, std::int32_t, std::string, double>;
  std::map<Key, std::vector<const KvRow*>> groups;
  for (const KvRow& row : rows) {
    groups[{row.suite, row.ctx_tokens, row.policy, -row.budget}].push_back(&row);
  }
  std::vector<KvSummary> summaries;
  for (const auto& [key, group] : groups) summaries.push_back(summary_of(group));
  return summaries;
}

std::vector<KvClaim> check_gate(std::span<const KvSummary> summaries) {
  constexpr double kLeastNeedleShare = 0.95, kMostWindow = 1.05;
  constexpr std::int32_t kLeastNeedles = 20;  // of a kind; of fewer no share says much
  std::vector<KvClaim> claims;
  const auto claim = [&](const KvSummary& s, std::string_view what, double limit, double value, bool holds) {
    claims.push_back({fmt::format("{} {} of {:.0f}% at {}: {} {:.4f}, limit {:.4f}", s.suite, s.policy,
                                  100 * s.budget, s.ctx_tokens, what, value, limit),
                      holds});
  };
  struct Found {
    std::int32_t full = 0, still = 0;
  };
  std::map<std::tuple<std::string, std::string, double>, Found> needles;  // of all contexts
  for (const KvSummary& s : summaries) {
    if (s.is_text() && s.budget >= 0.3) {
      const std::int32_t least_windows = s.ctx_tokens <= 2048 ? 20 : 6;
      claim(s, "windows measured", least_windows, s.num_items, s.num_items >= least_windows);
      const double limit = ratio_limit(s.budget);
      claim(s, "upper end of the perplexity ratio", limit, s.ratio_high, s.ratio_high <= limit);
      claim(s, "worst window", kMostWindow, s.worst_ratio, s.worst_ratio <= kMostWindow);
      claim(s, "share of bytes", s.budget, s.bytes_share, s.bytes_share <= s.budget);
    } else if (!s.is_text() && s.budget >= 0.25) {
      if (s.full_found > 0) claim(s, "share of bytes", s.budget, s.bytes_share, s.bytes_share <= s.budget);
      Found& found = needles[{s.suite, s.policy, -s.budget}];
      found.full += s.full_found;
      found.still += s.still_found;
    }
  }
  for (const auto& [key, found] : needles) {
    const auto& [suite, policy, budget] = key;
    const double share = found.full == 0 ? 0.0 : static_cast<double>(found.still) / found.full;
    claims.push_back(
        {fmt::format("{} {} of {:.0f}%: found {} of {}, {:.4f}, limit {:.4f} of at least {}", suite, policy,
                     -100 * budget, found.still, found.full, share, kLeastNeedleShare, kLeastNeedles),
         share >= kLeastNeedleShare && found.full >= kLeastNeedles});
  }
  return claims;
}

std::vector<KvClaim> missing_from_gate(std::span<const KvSummary> summaries, std::string_view policy,
                                       std::int32_t max_tokens) {
  std::vector<KvClaim> claims;
  const auto ask_for = [&](std::string_view suite, std::int32_t ctx_tokens, double budget) {
    const bool is_there = std::ranges::any_of(summaries, [&](const KvSummary& s) {
      return s.suite == suite && s.policy == policy && s.budget == budget && s.ctx_tokens == ctx_tokens;
    });
    if (is_there) return;
    claims.push_back(
        {fmt::format("{} {} of {:.0f}% at {}: not measured", suite, policy, 100 * budget, ctx_tokens),
         false});
  };
  for (const double budget : {0.5, 0.4, 0.3, 0.25}) {
    for (const char* suite : {"p1", "p2"}) {
      for (const std::int32_t ctx_tokens : {2048, 4096}) {
        if (budget >= 0.3) ask_for(suite, ctx_tokens, budget);
      }
    }
    for (const char* suite : {"needle-late", "needle-aware", "needle-keys"}) {
      for (const std::int32_t ctx_tokens : {1024, 2048, 4096, 8192}) {
        if (ctx_tokens <= max_tokens) ask_for(suite, ctx_tokens, budget);
      }
    }
  }
  return claims;
}

}  // namespace kvasir::eval
