// A `kvasir` whose device cuda:0 is the host executor (src/backend/cuda/simt/), for tests of the command line.
// KVASIR_EXECUTOR_LAUNCHES: after so many launches the device is gone.
#include <cstdlib>

#include "backend/cuda/runtime/simt_device.h"
#include "backend/gpu/cuda_devices.h"

namespace kvasir::backend {

std::vector<CudaDevice> cuda_devices() {
  return {{.number = 0, .name = "host executor", .memory_bytes = std::int64_t{1} << 36}};
}

std::string why_no_cuda_device() { return ""; }

std::unique_ptr<GpuDevice> open_cuda_device(int) {
  const char* launches = std::getenv("KVASIR_EXECUTOR_LAUNCHES");
  return cuda::make_simt_device({.max_launches = launches == nullptr ? 0 : std::atoll(launches)});
}

}  // namespace kvasir::backend
