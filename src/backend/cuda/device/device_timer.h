// The time that work takes on a device.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

namespace kvasir::cuda {

// The median of `rounds` times of `repeats` calls in a row, per call in microseconds, after one call to warm up.
template <class Work>
double median_us(Work work, int repeats, int rounds = 5) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  work();
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    cudaEventRecord(begin);
    for (int i = 0; i < repeats; ++i) work();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0.0f;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(1e3 * ms / repeats);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace kvasir::cuda
