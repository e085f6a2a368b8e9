// The machine's limits, for layers that see the engine but not its parts.
#pragma once

#include "backend/machine_limits.h"

namespace kvasir {

using backend::MachineLimits;
using backend::measure_machine_limits;
using backend::ProbeScope;
using backend::ReadBandwidth;

}  // namespace kvasir
