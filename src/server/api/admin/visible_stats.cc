#include "server/api/admin/visible_stats.h"

namespace kvasir::server::api {
namespace {

double ratio(double sum, double count) { return count > 0.0 ? sum / count : 0.0; }

double mean_seconds(const observe::Histogram& times) {
  return ratio(times.sum_seconds(), static_cast<double>(times.count()));
}

}  // namespace

EngineStats visible_stats(const EngineStats& stats, const observe::ServerMetrics& metrics,
                          const auth::Tenant& tenant) {
  if (tenant.is_operator) return stats;
  const observe::CostSums own = metrics.cost_of(tenant.name);
  EngineStats visible;
  visible.num_running = stats.num_running;
  visible.num_waiting = stats.num_waiting;
  visible.oldest_waiting_ms = stats.oldest_waiting_ms;
  visible.num_requests_rejected = stats.num_requests_rejected;
  visible.num_requests_too_late = stats.num_requests_too_late;
  visible.num_requests_beyond_queue = stats.num_requests_beyond_queue;
  visible.num_requests_expired = stats.num_requests_expired;
  visible.kv_blocks_total = stats.kv_blocks_total;
  visible.kv_bytes_total = stats.kv_bytes_total;
  visible.num_requests_finished = own.num_requests;
  visible.num_prompt_tokens = own.prompt_tokens;
  visible.num_cached_prompt_tokens = own.cached_tokens;
  visible.num_generated_tokens = own.completion_tokens;
  visible.prefix_queries_tokens = own.prompt_tokens;
  visible.prefix_hits_tokens = own.cached_tokens;
  return visible;
}

VisibleMeans visible_means(const EngineStats& stats, const observe::ServerMetrics& metrics,
                           const auth::Tenant& tenant) {
  if (!tenant.is_operator) {
    const observe::CostSums own = metrics.cost_of(tenant.name);
    return {
        .first_token_s = ratio(own.first_token_ms / 1000.0, static_cast<double>(own.num_with_first_token)),
        .request_s = ratio(own.total_ms / 1000.0, static_cast<double>(own.num_requests)),
        .generated_tokens_per_s =
            ratio(static_cast<double>(own.completion_tokens), own.cost.decode_ms / 1000.0)};
  }
  return {
      .first_token_s = mean_seconds(metrics.time_to_first_token),
      .request_s = mean_seconds(metrics.request),
      .generated_tokens_per_s =
          ratio(static_cast<double>(stats.num_generated_tokens), stats.step_seconds_total),
      .batch = ratio(static_cast<double>(stats.num_stepped_sequences), static_cast<double>(stats.num_steps))};
}

}  // namespace kvasir::server::api
