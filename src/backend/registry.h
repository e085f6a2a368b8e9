// Which devices Kvasir can run on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/gpu/gpu_device.h"
#include "base/thread_pool.h"
#include "kvasir/result.h"

namespace kvasir::backend {

// The instruction sets whose kernels this host runs, best first.
std::vector<std::string> host_isas();

// The CPU backend with the kernels of one instruction set: "ref", "avx2", "neon", or empty for the best
// that this host runs. `pool` must outlive the backend. Error (kUsage) naming what the host runs.
Result<std::unique_ptr<Backend>> make_cpu_backend(const std::string& isa, ThreadPool& pool,
                                                  Precision precision = Precision::kExact);

// A kind of GPU that a program was built with. Before the first backend is made.
using OpenGpu = std::function<Result<std::unique_ptr<GpuDevice>>()>;
void add_gpu(const std::string& name, OpenGpu open);

// A device of the program's own. Before the first backend is made on it; it replaces an earlier one of the name.
using MakeBackend = std::function<std::unique_ptr<Backend>(const kernels::KernelTable&, ThreadPool&)>;
void add_device(const std::string& name, MakeBackend make);

// The names of devices, the usual one first: "cpu", "guarded" (guarded/guarded_backend.h), and those of GPUs.
std::vector<std::string> device_names();

// A device that people may ask for, whether it is there or not.
struct DeviceDescription {
  std::string name;               // as --device takes it; "cuda" where no such device is there
  std::string kind;               // "cpu" or "cuda"
  std::int64_t memory_bytes = 0;  // of a GPU
  bool is_usable = false;
  std::string detail;  // the product, or why it is not usable
};
std::vector<DeviceDescription> describe_devices();

// Errors: kUsage for a name that is none, kMachine for a device that is not there. Empty is "cpu".
Status check_device(const std::string& device);

// Whether GpuBackend runs the device: it keeps cells of F16 and F32, runs no KV policy and no adapter, and packs the head
// in a way of its own.
bool is_gpu(const std::string& device);
// Query heads that may share a KV head there.
inline constexpr std::int32_t kMaxGpuGroupSize = cuda::kMaxAttentionRows;

// A backend may take so many bytes of a GPU's memory, or where that is 0 this share of all, as far as it is free.
struct GpuMemory {
  std::int64_t num_bytes = 0;
  double share = 0.9;
};

// The backend of a device, as make_cpu_backend() where that is "cpu" or empty. Errors: as check_device(), kUsage for
// an `isa` that the host lacks, kMachine where less memory than `num_bytes` is free.
Result<std::unique_ptr<Backend>> make_backend(const std::string& device, const std::string& isa, ThreadPool& pool,
                                              Precision precision = Precision::kExact, const GpuMemory& memory = {});

}  // namespace kvasir::backend
