// A device behind the door (cuda/simt/simt.h): the host executor, or a GPU where nvcc compiled this.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/gpu/gpu_device.h"

namespace kvasir::cuda {

struct SimtOptions {
  std::uint32_t order = 0;        // the executor's seed, which decides whose turn it is; a GPU has none
  std::int64_t max_launches = 0;  // after so many the device fails, for tests of what is left then; 0: never
  bool uses_graphs = false;       // launches wait until something needs their results; lists that come again run as one
};
std::unique_ptr<backend::GpuDevice> make_simt_device(const SimtOptions& options = {});

}  // namespace kvasir::cuda
