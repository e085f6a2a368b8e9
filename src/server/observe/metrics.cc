#include "server/observe/metrics.h"

namespace kvasir::server::observe {
namespace {

void add(const CostSums& more, CostSums& sums) {
  sums.num_requests += more.num_requests;
  sums.num_with_first_token += more.num_with_first_token;
  sums.prompt_tokens += more.prompt_tokens;
  sums.cached_tokens += more.cached_tokens;
  sums.completion_tokens += more.completion_tokens;
  sums.preprocess_ms += more.preprocess_ms;
  sums.flush_ms += more.flush_ms;
  sums.first_token_ms += more.first_token_ms;
  sums.total_ms += more.total_ms;
  sums.cost.queue_ms += more.cost.queue_ms;
  sums.cost.prefill_ms += more.cost.prefill_ms;
  sums.cost.decode_ms += more.cost.decode_ms;
  sums.cost.cpu_ms += more.cost.cpu_ms;
  sums.cost.kv_byte_seconds += more.cost.kv_byte_seconds;
}

}  // namespace

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
  add({.num_requests = 1,
       .num_with_first_token = generation.first_token_ms > 0.0 ? 1 : 0,
       .prompt_tokens = generation.usage.prompt_tokens,
       .cached_tokens = generation.usage.cached_tokens,
       .completion_tokens = generation.usage.completion_tokens,
       .preprocess_ms = generation.preprocess_ms,
       .flush_ms = record.flush_ms,
       .first_token_ms = generation.first_token_ms,
       .total_ms = record.total_ms,
       .cost = generation.cost},
      costs_[{record.tenant, record.route}]);
}

std::vector<std::pair<std::pair<std::string, std::string>, CostSums>> ServerMetrics::costs() const {
  const std::lock_guard lock(mutex_);
  std::map<std::pair<std::string, std::string>, CostSums> shown;
  for (const auto& [key, sums] : costs_) {
    const auto& [tenant, route] = key;
    add(sums, shown[{tenants_.contains(tenant) ? tenant : std::string(kOthers), route}]);
  }
  return {shown.begin(), shown.end()};
}

CostSums ServerMetrics::cost_of(const std::string& tenant) const {
  const std::lock_guard lock(mutex_);
  CostSums all;
  for (auto at = costs_.lower_bound({tenant, {}}); at != costs_.end() && at->first.first == tenant; ++at) {
    add(at->second, all);
  }
  return all;
}

std::map<RequestSlices::Slice, RequestSlices::Sums> ServerMetrics::slices() const {
  const std::lock_guard lock(mutex_);
  return slices_.sums();
}

std::vector<std::pair<std::pair<std::string, int>, std::int64_t>> ServerMetrics::responses() const {
  const std::lock_guard lock(mutex_);
  return {responses_.begin(), responses_.end()};
}

}  // namespace kvasir::server::observe
