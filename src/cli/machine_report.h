// The machine's measured limits, as `bench` and `doctor` show them.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "engine/machine_limits.h"

namespace kvasir::cli {

// {read_gb_s, int8_gmac_s, fp32_gflop_s}
void write_limits(JsonWriter& json, const MachineLimits& limits);
// One line for a person.
std::string describe_limits(const MachineLimits& limits);

// With as many threads as the engine takes for `threads` (0: physical cores).
Result<MachineLimits> measure_limits(int threads, ProbeScope scope = ProbeScope::kEverything);

}  // namespace kvasir::cli
