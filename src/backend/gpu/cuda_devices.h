// The GPUs of this machine that the program can compute on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/gpu/gpu_device.h"

namespace kvasir::backend {

struct CudaDevice {
  int number = 0;
  std::string name;  // of the product
  std::int64_t memory_bytes = 0;
};

// Empty without a device, without its driver, and in a program that was built without CUDA. C++20, for nvcc compiles one
// of the implementations.
std::vector<CudaDevice> cuda_devices();
// Why cuda_devices() is empty, in one line; else empty.
std::string why_no_cuda_device();
// Requires: cuda_devices() has the number.
std::unique_ptr<GpuDevice> open_cuda_device(int number);

}  // namespace kvasir::backend
