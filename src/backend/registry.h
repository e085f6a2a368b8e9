// Which devices Kvasir can run on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "kvasir/result.h"

namespace kvasir::backend {

// The instruction sets whose kernels this host runs, best first.
std::vector<std::string> host_isas();

// The CPU backend with the kernels of one instruction set: "ref", "avx2", "neon", or empty for the best
// that this host runs. `pool` must outlive the backend. Error (kUsage) naming what the host runs.
Result<std::unique_ptr<Backend>> make_cpu_backend(const std::string& isa, ThreadPool& pool,
                                                  Precision precision = Precision::kExact);

}  // namespace kvasir::backend
