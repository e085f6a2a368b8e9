// Runs op cases on a device and compares their bits: kvasir_gpu_check CASES [--bench]. A row for each case, with tabs
// between its columns. Exit code: 0 when every bit is equal, 1 when one is not, 3 without a device.
#include <cstdio>
#include <cstring>

#include "backend/cuda/cases/run_case.h"
#include "backend/cuda/device/device_timer.h"
#include "backend/cuda/device/gpu_bench.h"

namespace kvasir::cuda {
namespace {

// Whether the case gives the expected bits.
bool check_case(const OpCase& op) {
  simt::Device device;
  std::vector<std::vector<std::byte>> outputs;
  std::string fault = run_case(device, op, outputs);
  if (fault.empty()) fault = difference(op, outputs);
  double us = 0.0;
  if (fault.empty()) {
    BoundCase bound(device, op);
    us = median_us([&] { bound.launch(); }, 20, 3);
  }
  std::printf("case\t%s\t%s\t%s\t%.2f us%s%s\n", op.op.c_str(), op.name.c_str(),
              fault.empty() ? "bits equal" : "BITS DIFFER", us, fault.empty() ? "" : "\t", fault.c_str());
  return fault.empty();
}

int check_all(const char* path, bool benches) {
  std::vector<OpCase> cases;
  if (!read_cases(path, cases)) {
    std::fprintf(stderr, "%s: no file of cases\n", path);
    return 2;
  }
  std::size_t equal = 0;
  for (const OpCase& each : cases) equal += check_case(each);
  std::printf("cases\t%zu of %zu equal\n", equal, cases.size());
  simt::Device device;
  const bool is_benched = !benches || bench_kernels(device);
  if (!is_benched) std::fprintf(stderr, "bench: %s\n", device.error().c_str());
  return equal == cases.size() && is_benched ? 0 : 1;
}

}  // namespace
}  // namespace kvasir::cuda

int main(int argc, char** argv) {
  const bool benches = argc == 3 && std::strcmp(argv[2], "--bench") == 0;
  if (argc != 2 && !benches) {
    std::fputs("usage: kvasir_gpu_check CASES [--bench]\n", stderr);
    return 2;
  }
  int count = 0;
  cudaDeviceProp properties;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 ||
      cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    std::fputs("no CUDA device\n", stderr);
    return 3;
  }
  std::printf("device\t%s\tsm_%d%d\t%d SMs\n", properties.name, properties.major, properties.minor,
              properties.multiProcessorCount);
  return kvasir::cuda::check_all(argv[1], benches);
}
