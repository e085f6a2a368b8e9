#include "backend/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "backend/gpu/cuda_devices.h"
#include "backend/gpu/gpu_backend.h"
#include "backend/guarded/guarded_backend.h"
#include "backend/guarded/guarded_memory.h"
#include "base/printable.h"
#include "base/units.h"
#include "kernels/isa.h"

namespace kvasir::backend {

std::vector<std::string> host_isas() {
  std::vector<std::string> isas;
  for (const kernels::Isa& isa : kernels::host_isas()) isas.emplace_back(isa.table.isa);
  return isas;
}

namespace {

std::map<std::string, OpenGpu> usual_gpus() {
  std::map<std::string, OpenGpu> gpus;
  for (const CudaDevice& device : cuda_devices()) {
    gpus[fmt::format("cuda:{}", device.number)] = [number = device.number]() -> Result<std::unique_ptr<GpuDevice>> {
      if (auto opened = open_cuda_device(number)) return opened;
      return make_error(ErrorKind::kMachine, fmt::format("device: cuda:{} does not open", number), "device");
    };
  }
  return gpus;
}

// Asked for on first use: a driver takes its time.
std::map<std::string, OpenGpu>& gpus() {
  static std::map<std::string, OpenGpu> known = usual_gpus();
  return known;
}

std::map<std::string, MakeBackend>& own_devices() {
  static std::map<std::string, MakeBackend> known;
  return known;
}

bool is_usual(const std::string& device) { return device.empty() || device == "cpu" || device == "guarded"; }

// Addresses, not memory: far more than a model in a test needs.
constexpr std::int64_t kGuardedBytes = std::int64_t{64} << 30;

Result<const kernels::KernelTable*> table_of(const std::string& isa) {
  const kernels::KernelTable* table = isa.empty() ? &kernels::best_table() : kernels::find_table(isa.c_str());
  if (table != nullptr) return table;
  return make_error(ErrorKind::kUsage,
                    fmt::format("isa: this host runs {}, not '{}'", fmt::join(host_isas(), ", "), isa), "isa");
}

Status limit_memory(const std::string& name, const GpuMemory& wanted, GpuDevice& device) {
  const GpuDevice::Memory memory = device.memory();
  if (wanted.num_bytes > memory.free_bytes) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("gpu-memory: {} of {} are free on {}, {} were asked for", format_bytes(memory.free_bytes),
                                  format_bytes(memory.total_bytes), name, format_bytes(wanted.num_bytes)),
                      "gpu-memory");
  }
  const auto share_bytes = static_cast<std::int64_t>(wanted.share * static_cast<double>(memory.total_bytes));
  device.limit(wanted.num_bytes > 0 ? wanted.num_bytes : std::min(share_bytes, memory.free_bytes));
  return {};
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(const std::string& isa, ThreadPool& pool,
                                                  Precision precision) {
  KVASIR_TRY(const kernels::KernelTable* table, table_of(isa));
  return std::make_unique<CpuBackend>(*table, pool, precision);
}

void add_gpu(const std::string& name, OpenGpu open) { gpus()[name] = std::move(open); }

void add_device(const std::string& name, MakeBackend make) { own_devices()[name] = std::move(make); }

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu", "guarded"};
  for (const auto& [name, open] : gpus()) names.push_back(name);
  return names;
}

std::vector<DeviceDescription> describe_devices() {
  std::vector<DeviceDescription> devices;
  devices.push_back({.name = "cpu", .kind = "cpu", .is_usable = true, .detail = host_isas().front()});
  for (const CudaDevice& device : cuda_devices()) {
    devices.push_back({.name = fmt::format("cuda:{}", device.number),
                       .kind = "cuda",
                       .memory_bytes = device.memory_bytes,
                       .is_usable = true,
                       .detail = device.name});
  }
  if (devices.size() == 1) devices.push_back({.name = "cuda", .kind = "cuda", .detail = why_no_cuda_device()});
  return devices;
}

bool is_gpu(const std::string& device) { return !is_usual(device) && gpus().contains(device); }

Status check_device(const std::string& device) {
  if (is_usual(device) || own_devices().contains(device)) return {};
  const std::vector<std::string> names = device_names();
  if (std::ranges::find(names, device) != names.end()) return {};
  if (device == "cuda" || device.starts_with("cuda:")) {
    const std::string why = why_no_cuda_device();
    return make_error(ErrorKind::kMachine,
                      fmt::format("device: {} is not there: {}", printable(device),
                                  why.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : why),
                      "device");
  }
  return make_error(ErrorKind::kUsage,
                    fmt::format("device: one of {}, not '{}'", fmt::join(names, ", "), printable(device)),
                    "device");
}

Result<std::unique_ptr<Backend>> make_backend(const std::string& device, const std::string& isa, ThreadPool& pool,
                                              Precision precision, const GpuMemory& memory) {
  KVASIR_CHECKED(check_device(device));
  if (is_usual(device) && device != "guarded") return make_cpu_backend(isa, pool, precision);
  KVASIR_TRY(const kernels::KernelTable* table, table_of(isa));
  if (const auto own = own_devices().find(device); own != own_devices().end()) return own->second(*table, pool);
  if (device != "guarded") {
    KVASIR_TRY(std::unique_ptr<GpuDevice> opened, gpus().at(device)());
    KVASIR_CHECKED(limit_memory(device, memory, *opened));
    return std::make_unique<GpuBackend>(std::move(opened), *table, pool, precision);
  }
  KVASIR_TRY(auto guarded, GuardedMemory::reserve(kGuardedBytes));
  return std::make_unique<GuardedBackend>(*table, pool, precision, std::move(guarded));
}

}  // namespace kvasir::backend
