// Speeds of kernels at the shapes of models.
#pragma once

#include "backend/cuda/simt/simt.h"

namespace kvasir::cuda {

// Prints the copy bandwidth and a row for each kernel and shape. Returns false when the device says an error.
bool bench_kernels(simt::Device& device);

}  // namespace kvasir::cuda
