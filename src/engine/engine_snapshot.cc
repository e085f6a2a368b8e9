#include "engine/engine_snapshot.h"

#include <algorithm>
#include <chrono>

#include "kv/kv_map.h"

namespace kvasir {
namespace {

RequestStage stage_of(const sched::Sequence& sequence) {
  if (sequence.status == sched::SequenceStatus::kWaiting) return RequestStage::kWaiting;
  return sequence.has_computed_prompt() ? RequestStage::kGenerating : RequestStage::kPrefill;
}

RequestActivity describe_request(const ActiveRequest& request, const sched::Scheduler& scheduler,
                                 sched::TimePoint now) {
  RequestActivity snapshot{
      .id = request.id,
      .client_id = request.request.client_id,
      .tenant = request.request.tenant,
      .priority = request.request.priority,
      .num_choices = request.request.sampling.n,
      .num_prompt_tokens = static_cast<std::int32_t>(request.request.prompt_token_ids.size()),
      .num_cached_tokens = request.cached_tokens};
  for (std::size_t i = 0; i < request.choices.size(); ++i) {
    snapshot.num_generated_tokens += request.choices[i].completion_tokens;
    const auto found = scheduler.sequences().find(request.sequence(i));
    if (found == scheduler.sequences().end()) continue;  // it has ended
    const sched::Sequence& sequence = found->second;
    snapshot.stage = std::max(snapshot.stage, stage_of(sequence));
    snapshot.num_computed_tokens = std::max(snapshot.num_computed_tokens, sequence.num_computed_tokens);
    snapshot.num_cached_tokens = std::max(snapshot.num_cached_tokens, sequence.num_cached_tokens);
    snapshot.age_ms = std::chrono::duration<double, std::milli>(now - sequence.times.arrived).count();
  }
  return snapshot;
}

}  // namespace

EngineSnapshot take_engine_snapshot(
    const std::unordered_map<std::uint64_t, std::unique_ptr<ActiveRequest>>& requests,
    const sched::Scheduler& scheduler, const kv::KvCacheManager& kv, sched::TimePoint now) {
  EngineSnapshot snapshot;
  for (const auto& [id, request] : requests)
    snapshot.requests.push_back(describe_request(*request, scheduler, now));
  std::ranges::sort(snapshot.requests, {}, &RequestActivity::id);
  const kv::KvMap map = kv::map_of(kv);
  for (std::size_t owner = 0; owner < map.size(); ++owner) {
    for (std::size_t format = 0; format < map[owner].size(); ++format) {
      if (map[owner][format] == 0) continue;
      snapshot.kv.push_back({.owner = static_cast<KvOwner>(owner),
                             .format = kv::name_of(static_cast<kv::KvFormat>(format)),
                             .bytes = map[owner][format]});
    }
  }
  return snapshot;
}

}  // namespace kvasir
