// The cost of requests: the times of their stages, and their part of each step.
#pragma once

#include <cstddef>

#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "sched/scheduler_output.h"

namespace kvasir {

// Bytes of keys and values, as computed, that the i-th sequence of a step holds: what a window has left
// behind is not held, and what runs layer by layer is not counted.
double held_bytes(const ModelInfo& info, const sched::SchedulerOutput& output, std::size_t i);

// The i-th sequence's part of a step of `step_ms` on all threads together `cpu_ms`: by its tokens, those that
// run layer by layer by the layers that they ran.
void charge_step(RequestCost& cost, const sched::SchedulerOutput& output, std::size_t i,
                 std::int32_t num_layers, double step_ms, double cpu_ms, double kv_bytes);

// The stages so far of a choice of the request.
void note_times(const sched::SequenceTimes& times, sched::TimePoint now, RequestCost& cost);

}  // namespace kvasir
