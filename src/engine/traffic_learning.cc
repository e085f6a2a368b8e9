#include "engine/traffic_learning.h"

#include <cstdint>
#include <utility>

#include "kv/policy/registry.h"

namespace kvasir {

TrafficLearning::TrafficLearning(kv::ForecastLearner* learner, const kv::KvCacheConfig& kv, const std::string& model_path)
    : learner_(learner != nullptr && learner->begin(kv, model_path) ? learner : nullptr), kv_(kv) {}

void TrafficLearning::prepare(ActiveRequest& request, const kv::KvCacheManager& cache, std::int64_t num_waiting,
                              sched::SequenceRequest& sequence) const {
  kv::KvPolicySettings& settings = sequence.kv_policy;
  if (learner_ == nullptr || !settings.is_lossy() || settings.policy != &kv::learned_ladder_policy()) return;
  settings.forecast = learner_->served();
  const bool may = request.request.kv.learns && sequence.num_choices == 1 && sequence.stop.max_tokens > 0;
  if (!may || num_waiting > 0 || !has_room(sequence, cache)) return;
  std::shared_ptr<const kv::KvPolicy> shadow = learner_->shadow(request.id);
  if (shadow == nullptr) return;
  settings = {.policy = shadow.get(), .weights_version = settings.weights_version};
  settings.own_policy = std::move(shadow);
  request.is_kv_shadow = true;
}

bool TrafficLearning::has_room(const sched::SequenceRequest& sequence, const kv::KvCacheManager& cache) const {
  const std::int64_t num_tokens = std::ssize(sequence.prompt_token_ids) + sequence.stop.max_tokens;
  const std::int64_t num_blocks = (num_tokens + kv::kTokensPerBlock - 1) / kv::kTokensPerBlock;
  const std::int64_t bytes = num_blocks * kv_.num_full_cells() * kv::cell_bytes(kv_.new_cells, kv_.full_head_dim());
  return cache.free_bytes() >= 2 * bytes;
}

void TrafficLearning::note_waiting(std::int64_t num_requests) const {
  if (learner_ != nullptr) learner_->note_waiting(num_requests);
}

void TrafficLearning::describe(EngineStats& stats) const {
  if (learner_ != nullptr) stats.kv_learning = learner_->stats();
}

}  // namespace kvasir
