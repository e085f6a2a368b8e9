#include "eval/gate/basic_layer.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/kv_summary.h"
#include "eval/kv_text.h"

namespace kvasir::eval {
namespace {

constexpr std::int32_t kWindowStride = 8;

// p1 of a short window scores its last half.
ScoredText scored_window(const std::vector<TokenId>& window, bool acts_once) {
  const auto ctx = static_cast<std::int32_t>(window.size());
  const std::int32_t num_last = std::min(kCompressThenScore.num_scored_tokens, ctx / 2);
  const std::int32_t first = acts_once ? (ctx - num_last) / kKvStepTokens * kKvStepTokens : kKvStepTokens;
  ScoredText text{.tokens = window, .policy_acts_at = acts_once ? first : 0};
  for (std::int32_t position = first; position + 1 < ctx; ++position) text.positions.push_back(position);
  return text;
}

KvRow row_of(std::string_view suite, std::int32_t item, const ScoredText& text, const ArmDivergence& apart) {
  KvRow row{.suite = std::string(suite), .ctx_tokens = static_cast<std::int32_t>(text.tokens.size()), .item = item};
  row.num_tokens = static_cast<std::int32_t>(text.positions.size());
  row.nll = apart.nll;
  row.full_nll = apart.reference_nll;
  row.kl = apart.kl;
  row.top1 = apart.top1;
  row.bytes_share = apart.bytes_share;
  return row;
}

void add_checks(const KvSummary& s, const BasicLimits& limits, GateLayer& layer) {
  const auto add = [&](std::string_view name, double value, double limit, double best, bool less_is_better) {
    layer.checks.push_back({.name = fmt::format("{} {}", s.suite, name), .value = value, .limit = limit, .best = best,
                            .less_is_better = less_is_better, .num_items = s.num_items, .num_asked = s.num_items,
                            .least = limits.least_windows});
  };
  add("kl", s.kl, limits.kl, 0.0, true);
  add("ratio_high", s.ratio_high, limits.ratio_high, 1.0, true);
  add("worst_ratio", s.worst_ratio, limits.worst_ratio, 1.0, true);
  add("top1", s.top1, limits.top1, 1.0, false);
}

}  // namespace

Result<GateLayer> run_basic_layer(const GateArms& arms, const BasicItems& items, const GateProgress& progress) {
  GateLayer layer{.name = "basic", .weight = 0.3, .least = items.limits.least_windows};
  std::vector<KvRow> rows;
  const double total = static_cast<double>(items.windows.size()) * (items.has_policy ? 2.0 : 1.0);
  for (const KvProtocol& protocol : {kStreaming, kCompressThenScore}) {
    const bool acts_once = protocol.num_scored_tokens > 0;
    if (acts_once && !items.has_policy) continue;
    for (std::size_t i = 0; i < items.windows.size(); ++i) {
      progress(fmt::format("basic {}", protocol.suite), static_cast<double>(rows.size()) / total);
      const ScoredText text = scored_window(items.windows[i], acts_once);
      KVASIR_TRY(const ArmDivergence apart, compare_arms(arms, text, kWindowStride));
      rows.push_back(row_of(protocol.suite, static_cast<std::int32_t>(i), text, apart));
    }
  }
  layer.num_items = static_cast<std::int32_t>(items.windows.size());
  for (const KvSummary& s : summarise(rows)) add_checks(s, items.limits, layer);
  const bool saves_bytes = std::ranges::any_of(rows, [](const KvRow& row) { return row.bytes_share < 1.0; });
  if (items.should_save_bytes && !saves_bytes) layer.reason = "the policy kept all bytes, so nothing was measured";
  return layer;
}

}  // namespace kvasir::eval
