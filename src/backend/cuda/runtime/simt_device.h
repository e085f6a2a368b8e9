// A device behind the door (cuda/simt/simt.h): the host executor, or a GPU where nvcc compiled this.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/gpu/gpu_device.h"

namespace kvasir::cuda {

// `order`: the executor's seed, which decides whose turn it is; a GPU has none. `max_launches`: after so many the device
// fails, for tests of what is left then; 0: never.
std::unique_ptr<backend::GpuDevice> make_simt_device(std::uint32_t order = 0, std::int64_t max_launches = 0);

}  // namespace kvasir::cuda
