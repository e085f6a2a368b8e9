#include "server/admin/visible_stats.h"

namespace kvasir::server {

EngineStats visible_stats(EngineStats stats, const ServerMetrics& metrics, const Tenant& tenant) {
  if (tenant.is_operator) return stats;
  const CostSums own = metrics.cost_of(tenant.name);
  stats.num_prompt_tokens = own.prompt_tokens;
  stats.num_cached_prompt_tokens = own.cached_tokens;
  stats.num_generated_tokens = own.completion_tokens;
  stats.prefix_queries_tokens = stats.num_prompt_tokens;
  stats.prefix_hits_tokens = stats.num_cached_prompt_tokens;
  return stats;
}

}  // namespace kvasir::server
