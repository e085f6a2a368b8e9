// How long the turns of tenants are on a machine of this speed.
#pragma once

#include "admission/step_time_model.h"

namespace kvasir::admission {

// The part of WaitingConfig::tenant_quantum_tokens that prompts can have in half a target: 1 where the whole
// quantum fits, else a power of 1/2, so that it seldom changes. Without it a turn of 4,096 tokens takes
// 40 s where 100 tokens of a prompt are computed in a second, and a tenant that comes waits that long.
// `ttft_target_ms`: 0 where there is none. 1 until a step was observed.
double turn_scale(const StepTimeModel& step_times, double tenant_quantum_tokens, double ttft_target_ms);

}  // namespace kvasir::admission
