#include "engine/engine_counters.h"

#include <algorithm>
#include <chrono>

namespace kvasir {
namespace {

template <std::size_t N>
void count_in_bucket(const std::array<double, N>& bounds, double value,
                     std::array<std::int64_t, N + 1>& counts) {
  ++counts[static_cast<std::size_t>(std::ranges::lower_bound(bounds, value) - bounds.begin())];
}

}  // namespace

void take_counts(const sched::Scheduler& scheduler, sched::TimePoint now, EngineStats& stats) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const sched::SchedulerStats counts = scheduler.stats();
  stats.num_running = counts.num_running;
  stats.num_running_tokens = counts.num_running_tokens;
  stats.oldest_waiting_ms = counts.oldest_arrival ? Milliseconds(now - *counts.oldest_arrival).count() : 0.0;
  stats.num_requests_expired = counts.num_expired;
  stats.num_preemptions = counts.num_preemptions;
  stats.num_kv_policies_given_up = counts.num_kept_exact;
  stats.prefix_queries_tokens = counts.prefix_queries_tokens;
  stats.prefix_hits_tokens = counts.prefix_hits_tokens;
}

void take_counts(const kv::KvCacheManager& kv, EngineStats& stats) {
  stats.kv_blocks_total = 0;
  stats.kv_blocks_used = 0;
  for (std::int32_t group = 0; group < kv.num_groups(); ++group) {
    stats.kv_blocks_total += kv.group(group).num_blocks;
    stats.kv_blocks_used += kv.pool(group).num_blocks() - kv.pool(group).num_free();
  }
  stats.num_kv_evictions = kv.num_evictions();
  const kv::CellStore& cells = kv.cells();
  stats.kv_bytes_total = cells.arena().capacity_bytes();
  stats.kv_bytes_used = kv.held_bytes();
  stats.kv_format_bytes.resize(kv::kNumKvFormats - 1);  // all that take memory
  for (std::size_t i = 0; i < stats.kv_format_bytes.size(); ++i) {
    const auto format = static_cast<kv::KvFormat>(i + 1);
    stats.kv_format_bytes[i] = {kv::name_of(format), cells.arena().used_bytes(format)};
  }
}

void count_mask(EngineStats& stats, double seconds) {
  stats.guide_mask_seconds_total += seconds;
  count_in_bucket(kMaskSecondsBounds, seconds, stats.masks_by_seconds);
}

void count_guided_answer(EngineStats& stats, FinishReason reason, std::int32_t num_forced_tokens) {
  if (reason == FinishReason::kStop) ++stats.num_guided_answers;
  if (reason == FinishReason::kLength) ++stats.num_guided_answers_cut;
  stats.num_forced_tokens += num_forced_tokens;
}

void count_step(EngineStats& stats, std::int64_t num_sequences, double seconds) {
  ++stats.num_steps;
  stats.num_stepped_sequences += num_sequences;
  stats.step_seconds_total += seconds;
  count_in_bucket(kStepSecondsBounds, seconds, stats.steps_by_seconds);
  count_in_bucket(kStepSequencesBounds, static_cast<double>(num_sequences), stats.steps_by_sequences);
}

}  // namespace kvasir
