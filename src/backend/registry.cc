#include "backend/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "backend/guarded/guarded_backend.h"
#include "backend/guarded/guarded_memory.h"
#include "base/printable.h"
#include "kernels/isa.h"

namespace kvasir::backend {

std::vector<std::string> host_isas() {
  std::vector<std::string> isas;
  for (const kernels::Isa& isa : kernels::host_isas()) isas.emplace_back(isa.table.isa);
  return isas;
}

namespace {

// Addresses, not memory: far more than a model in a test needs.
constexpr std::int64_t kGuardedBytes = std::int64_t{64} << 30;

Result<const kernels::KernelTable*> table_of(const std::string& isa) {
  const kernels::KernelTable* table = isa.empty() ? &kernels::best_table() : kernels::find_table(isa.c_str());
  if (table != nullptr) return table;
  return make_error(ErrorKind::kUsage,
                    fmt::format("isa: this host runs {}, not '{}'", fmt::join(host_isas(), ", "), isa), "isa");
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(const std::string& isa, ThreadPool& pool,
                                                  Precision precision) {
  KVASIR_TRY(const kernels::KernelTable* table, table_of(isa));
  return std::make_unique<CpuBackend>(*table, pool, precision);
}

std::vector<std::string> device_names() { return {"cpu", "guarded"}; }

Status check_device(const std::string& device) {
  const std::vector<std::string> names = device_names();
  if (device.empty() || std::ranges::find(names, device) != names.end()) return {};
  if (device == "cuda" || device.starts_with("cuda:")) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("device: {} is not there, there is no GPU backend yet", printable(device)), "device");
  }
  return make_error(ErrorKind::kUsage,
                    fmt::format("device: one of {}, not '{}'", fmt::join(names, ", "), printable(device)),
                    "device");
}

Result<std::unique_ptr<Backend>> make_backend(const std::string& device, const std::string& isa, ThreadPool& pool,
                                              Precision precision) {
  KVASIR_CHECKED(check_device(device));
  if (device != "guarded") return make_cpu_backend(isa, pool, precision);
  KVASIR_TRY(const kernels::KernelTable* table, table_of(isa));
  KVASIR_TRY(auto memory, GuardedMemory::reserve(kGuardedBytes));
  return std::make_unique<GuardedBackend>(*table, pool, precision, std::move(memory));
}

}  // namespace kvasir::backend
