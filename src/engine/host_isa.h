// The instruction sets that this host runs, for layers that see the engine but not its parts.
#pragma once

#include "backend/registry.h"

namespace kvasir {

using backend::host_isas;

}  // namespace kvasir
