// One page that shows what KV policies cost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "eval/kv_row.h"
#include "eval/kv_summary.h"

namespace kvasir::eval {

// Cells of a policy: the attention that was forecast for them, and what they got.
struct ForecastPoint {
  std::string name;
  double forecast = 0.0, realised = 0.0;  // means, a share of what a query pays
  std::int64_t num_cells = 0;
};

// A self-contained HTML document: per suite and context a chart of perplexity ratio or needles found over
// bytes, a line per policy, and the table behind it; needles by depth; realised over forecast attention where
// there is some.
std::string kv_report(std::string_view model, std::span<const KvRow> rows,
                      std::span<const KvSummary> summaries, std::span<const KvClaim> claims,
                      std::span<const ForecastPoint> forecasts);

}  // namespace kvasir::eval
