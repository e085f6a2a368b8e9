// The instruction sets and devices that this host has, for layers that see the engine but not its parts.
#pragma once

#include "backend/registry.h"

namespace kvasir {

using backend::describe_devices;
using backend::DeviceDescription;
using backend::host_isas;

}  // namespace kvasir
