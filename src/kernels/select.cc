// Which instruction sets this host runs.
#include <cstring>
#include <vector>

#include "kernels/activation.h"
#include "kernels/byte_columns.h"
#include "kernels/isa.h"
#include "kernels/nibble_planes.h"
#include "kernels/pack.h"
#include "kernels/ref/kernels.h"

namespace kvasir::kernels {

namespace ref {
#include "kernels/generic/table-inl.h"
}  // namespace ref

std::span<const Isa> host_isas() {
  static const std::vector<Isa> kIsas = [] {
    std::vector<Isa> isas;
    for (const Isa& isa : native_isas()) {
      if (isa.runs_here) isas.push_back(isa);
    }
    isas.push_back({ref::make_table("ref"), &ref::kProbeLoops, true});
    return isas;
  }();
  return kIsas;
}

const KernelTable* find_table(const char* isa) {
  for (const Isa& candidate : host_isas()) {
    if (std::strcmp(candidate.table.isa, isa) == 0) return &candidate.table;
  }
  return nullptr;
}

const KernelTable& best_table() { return host_isas().front().table; }

const ProbeLoops& probe_loops() { return *host_isas().front().probe_loops; }

}  // namespace kvasir::kernels
