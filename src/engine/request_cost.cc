#include "engine/request_cost.h"

#include <algorithm>
#include <chrono>

namespace kvasir {

double held_bytes(const ModelInfo& info, const sched::SchedulerOutput& output, std::size_t i) {
  if (i >= output.num_whole) return 0.0;
  const std::int32_t num_tokens = output.sequences[i].first_position + output.sequences[i].num_committed_tokens();
  double bytes = 0.0;
  for (const KvGroupInfo& group : info.kv_groups) {
    const std::int32_t num_held =
        group.window_tokens > 0 ? std::min(num_tokens, group.window_tokens) : num_tokens;
    bytes += static_cast<double>(group.bytes_per_token) * num_held;
  }
  return bytes;
}

void charge_step(RequestCost& cost, const sched::SchedulerOutput& output, std::size_t i,
                 std::int32_t num_layers, double step_ms, double cpu_ms, double kv_bytes) {
  const double part_of_layers =
      static_cast<double>(output.layer_pass.end_layer - output.layer_pass.first_layer) / num_layers;
  const auto weight = [&](std::size_t s) {
    return output.sequences[s].num_tokens * (s < output.num_whole ? 1.0 : part_of_layers);
  };
  double all = 0.0;
  for (std::size_t s = 0; s < output.sequences.size(); ++s) all += weight(s);
  cost.cpu_ms += cpu_ms * weight(i) / all;
  cost.kv_byte_seconds += kv_bytes * step_ms / 1000.0;
}

void note_times(const sched::SequenceTimes& times, sched::TimePoint now, RequestCost& cost) {
  const auto extend = [](double& ms, sched::TimePoint from, sched::TimePoint to) {
    ms = std::max(ms, std::chrono::duration<double, std::milli>(to - from).count());
  };
  if (!times.started) return;
  extend(cost.queue_ms, times.arrived, *times.started);
  if (!times.prompt_computed) return;
  extend(cost.prefill_ms, *times.started, *times.prompt_computed);
  extend(cost.decode_ms, *times.prompt_computed, now);
}

}  // namespace kvasir
