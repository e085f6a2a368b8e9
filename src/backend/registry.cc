#include "backend/registry.h"

#include <fmt/format.h>

#include "backend/cpu/cpu_backend.h"
#include "kernels/isa.h"

namespace kvasir::backend {

std::vector<std::string> host_isas() {
  std::vector<std::string> isas;
  for (const kernels::Isa& isa : kernels::host_isas()) isas.emplace_back(isa.table.isa);
  return isas;
}

Result<std::unique_ptr<Backend>> make_cpu_backend(const std::string& isa, ThreadPool& pool,
                                                  Precision precision) {
  const kernels::KernelTable* table = isa.empty() ? &kernels::best_table() : kernels::find_table(isa.c_str());
  if (table == nullptr) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("isa: this host runs {}, not '{}'", fmt::join(host_isas(), ", "), isa),
                      "isa");
  }
  return std::make_unique<CpuBackend>(*table, pool, precision);
}

}  // namespace kvasir::backend
