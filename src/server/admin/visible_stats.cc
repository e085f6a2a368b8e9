#include "server/admin/visible_stats.h"

namespace kvasir::server {

EngineStats visible_stats(EngineStats stats, const ServerMetrics& metrics, const Tenant& tenant) {
  if (tenant.is_operator) return stats;
  stats.num_prompt_tokens = 0;
  stats.num_cached_prompt_tokens = 0;
  stats.num_generated_tokens = 0;
  for (const auto& [key, sums] : metrics.costs()) {
    if (key.first != tenant.name) continue;
    stats.num_prompt_tokens += sums.prompt_tokens;
    stats.num_cached_prompt_tokens += sums.cached_tokens;
    stats.num_generated_tokens += sums.completion_tokens;
  }
  stats.prefix_queries_tokens = stats.num_prompt_tokens;
  stats.prefix_hits_tokens = stats.num_cached_prompt_tokens;
  return stats;
}

}  // namespace kvasir::server
