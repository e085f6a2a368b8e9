// The instruction sets this host runs, for those who see the engine but not what it is made of.
#pragma once

#include "backend/registry.h"

namespace kvasir {

using backend::host_isas;

}  // namespace kvasir
