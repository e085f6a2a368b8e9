// One page that shows what KV policies cost.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "eval/kv_row.h"
#include "eval/kv_summary.h"

namespace kvasir::eval {

// A self-contained HTML document: per suite and context a chart of perplexity ratio or needles found over
// bytes, a line per policy, and the table behind it; needles by depth.
std::string kv_report(std::string_view model, std::span<const KvRow> rows,
                      std::span<const KvSummary> summaries, std::span<const KvClaim> claims);

}  // namespace kvasir::eval
