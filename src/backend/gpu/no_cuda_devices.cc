// A program that was built without CUDA has no device.
#include "backend/gpu/cuda_devices.h"

namespace kvasir::backend {

std::vector<CudaDevice> cuda_devices() { return {}; }
std::string why_no_cuda_device() { return "this program was built without CUDA (-DKVASIR_CUDA=ON)"; }
std::unique_ptr<GpuDevice> open_cuda_device(int) { return nullptr; }

}  // namespace kvasir::backend
