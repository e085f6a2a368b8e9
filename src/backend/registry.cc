#include "backend/registry.h"

#include <fmt/format.h>

#include "backend/cpu/cpu_backend.h"

namespace kvasir::backend {

Result<std::unique_ptr<Backend>> make_cpu_backend(const std::string& isa, ThreadPool& pool) {
  const kernels::KernelTable* table = isa.empty() ? &kernels::best_table() : kernels::find_table(isa.c_str());
  if (table == nullptr) {
    std::string known;
    for (const char* name : {"ref", "avx2", "avx512"}) {
      if (kernels::find_table(name) != nullptr) known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    }
    return make_error(ErrorKind::kUsage, fmt::format("isa: this host runs {}, not '{}'", known, isa), "isa");
  }
  return std::make_unique<CpuBackend>(*table, pool);
}

}  // namespace kvasir::backend
