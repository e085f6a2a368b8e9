// The machine's limits, for those who see the engine but not what it is made of.
#pragma once

#include "backend/machine_limits.h"

namespace kvasir {

using backend::MachineLimits;
using backend::measure_machine_limits;
using backend::ProbeScope;
using backend::ReadBandwidth;

}  // namespace kvasir
