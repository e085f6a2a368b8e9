#include "server/metrics.h"

namespace kvasir::server {

void ServerMetrics::count_response(std::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[{std::string(route), status}];
}

void ServerMetrics::count_cost(const AccessRecord& record) {
  if (!record.generation) return;
  constexpr std::size_t kMaxTenants = 64;
  const GenerationRecord& generation = *record.generation;
  const std::lock_guard lock(mutex_);
  slices_.count(record);
  if (tenants_.size() < kMaxTenants) tenants_.insert(record.tenant);
  CostSums& sums =
      costs_[{tenants_.contains(record.tenant) ? record.tenant : std::string(kOthers), record.route}];
  ++sums.num_requests;
  sums.prompt_tokens += generation.usage.prompt_tokens;
  sums.cached_tokens += generation.usage.cached_tokens;
  sums.completion_tokens += generation.usage.completion_tokens;
  sums.preprocess_ms += generation.preprocess_ms;
  sums.flush_ms += record.flush_ms;
  sums.cost.queue_ms += generation.cost.queue_ms;
  sums.cost.prefill_ms += generation.cost.prefill_ms;
  sums.cost.decode_ms += generation.cost.decode_ms;
  sums.cost.cpu_ms += generation.cost.cpu_ms;
  sums.cost.kv_byte_seconds += generation.cost.kv_byte_seconds;
}

std::vector<std::pair<std::pair<std::string, std::string>, CostSums>> ServerMetrics::costs() const {
  const std::lock_guard lock(mutex_);
  return {costs_.begin(), costs_.end()};
}

std::map<RequestSlices::Slice, RequestSlices::Sums> ServerMetrics::slices() const {
  const std::lock_guard lock(mutex_);
  return slices_.sums();
}

std::vector<std::pair<std::pair<std::string, int>, std::int64_t>> ServerMetrics::responses() const {
  const std::lock_guard lock(mutex_);
  return {responses_.begin(), responses_.end()};
}

}  // namespace kvasir::server
