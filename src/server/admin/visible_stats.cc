#include "server/admin/visible_stats.h"

namespace kvasir::server {

EngineStats visible_stats(EngineStats stats, const ServerMetrics& metrics, const Tenant& tenant) {
  if (tenant.is_operator) return stats;
  const CostSums own = metrics.cost_of(tenant.name);
  stats.num_requests_finished = own.num_requests;
  stats.num_prompt_tokens = own.prompt_tokens;
  stats.num_cached_prompt_tokens = own.cached_tokens;
  stats.num_generated_tokens = own.completion_tokens;
  stats.prefix_queries_tokens = stats.num_prompt_tokens;
  stats.prefix_hits_tokens = stats.num_cached_prompt_tokens;
  return stats;
}

MeanTimes visible_times(const ServerMetrics& metrics, const Tenant& tenant) {
  const auto mean = [](double sum, std::int64_t count) {
    return count > 0 ? sum / static_cast<double>(count) : 0.0;
  };
  if (!tenant.is_operator) {
    const CostSums own = metrics.cost_of(tenant.name);
    return {.first_token_s = mean(own.first_token_ms / 1000.0, own.num_with_first_token),
            .request_s = mean(own.total_ms / 1000.0, own.num_requests)};
  }
  const Histogram &first = metrics.time_to_first_token, &whole = metrics.request;
  return {.first_token_s = mean(first.sum_seconds(), static_cast<std::int64_t>(first.count())),
          .request_s = mean(whole.sum_seconds(), static_cast<std::int64_t>(whole.count()))};
}

}  // namespace kvasir::server
