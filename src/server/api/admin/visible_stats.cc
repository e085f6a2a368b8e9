#include "server/api/admin/visible_stats.h"

#include <algorithm>
#include <vector>

namespace kvasir::server::api {
namespace {

double ratio(double sum, double count) { return count > 0.0 ? sum / count : 0.0; }

double mean_seconds(const ApiContext& context, observe::Histogram observe::ModelTimes::*times) {
  double sum = 0.0, count = 0.0;
  for (const ApiContext* const model : contexts_of_models(context)) {
    const observe::Histogram& of_model = (*model->times).*times;
    sum += of_model.sum_seconds();
    count += static_cast<double>(of_model.count());
  }
  return ratio(sum, count);
}

constexpr std::int64_t EngineStats::*kSums[] = {
    &EngineStats::num_running,
    &EngineStats::num_running_tokens,
    &EngineStats::num_waiting,
    &EngineStats::num_requests_finished,
    &EngineStats::num_requests_cancelled,
    &EngineStats::num_requests_failed,
    &EngineStats::num_requests_rejected,
    &EngineStats::num_requests_too_late,
    &EngineStats::num_requests_beyond_queue,
    &EngineStats::num_requests_expired,
    &EngineStats::num_prompt_tokens,
    &EngineStats::num_cached_prompt_tokens,
    &EngineStats::num_generated_tokens,
    &EngineStats::num_preemptions,
    &EngineStats::num_steps,
    &EngineStats::num_stepped_sequences,
    &EngineStats::kv_blocks_total,
    &EngineStats::kv_bytes_total,
    &EngineStats::kv_bytes_used,
    &EngineStats::num_kv_evictions,
    &EngineStats::prefix_queries_tokens,
    &EngineStats::prefix_hits_tokens,
};

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

VisibleMeans visible_means(const ApiContext& context, const EngineStats& stats, const auth::Tenant& tenant) {
  if (!tenant.is_operator) {
    const observe::CostSums own = context.metrics.cost_of(tenant.name);
    return {
        .first_token_s = ratio(own.first_token_ms / 1000.0, static_cast<double>(own.num_with_first_token)),
        .request_s = ratio(own.total_ms / 1000.0, static_cast<double>(own.num_requests)),
        .generated_tokens_per_s =
            ratio(static_cast<double>(own.completion_tokens), own.cost.decode_ms / 1000.0)};
  }
  return {
      .first_token_s = mean_seconds(context, &observe::ModelTimes::time_to_first_token),
      .request_s = mean_seconds(context, &observe::ModelTimes::request),
      .generated_tokens_per_s =
          ratio(static_cast<double>(stats.num_generated_tokens), stats.step_seconds_total),
      .batch = ratio(static_cast<double>(stats.num_stepped_sequences), static_cast<double>(stats.num_steps))};
}

EngineStats total_stats(const ApiContext& context) {
  const std::vector<const ApiContext*> models = contexts_of_models(context);
  if (models.size() == 1) return models.front()->engine.stats();
  EngineStats total;
  for (const ApiContext* const model : models) {
    const EngineStats stats = model->engine.stats();
    for (const auto member : kSums) total.*member += stats.*member;
    total.step_seconds_total += stats.step_seconds_total;
    total.oldest_waiting_ms = std::max(total.oldest_waiting_ms, stats.oldest_waiting_ms);
  }
  return total;
}

}  // namespace kvasir::server::api
