#include "backend/gpu/cuda_devices.h"

#include <cuda_runtime.h>

#include <cstdlib>
#include <string_view>

#include "backend/cuda/runtime/simt_device.h"

namespace kvasir::backend {

std::vector<CudaDevice> cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  std::vector<CudaDevice> devices;
  for (int number = 0; number < count; ++number) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, number) != cudaSuccess) continue;
    devices.push_back({number, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  return devices;
}

std::string why_no_cuda_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count == 0 ? "no CUDA device is there" : "";
}

std::unique_ptr<GpuDevice> open_cuda_device(int number) {
  if (cudaSetDevice(number) != cudaSuccess) return nullptr;
  const char* graphs = std::getenv("KVASIR_GPU_GRAPHS");
  return cuda::make_simt_device({.uses_graphs = graphs != nullptr && std::string_view(graphs) == "1"});
}

}  // namespace kvasir::backend
