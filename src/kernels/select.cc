// Which instruction sets there are, and which of them this host runs.
#include <cstring>
#include <iterator>

#include "base/cpu_features.h"
#include "kernels/activation.h"
#include "kernels/float_kernels.h"
#include "kernels/matmul_kernels.h"
#include "kernels/pack.h"
#include "kernels/split.h"
#include "kernels/table.h"

namespace kvasir::kernels {

namespace ref {
#include "kernels/generic/table-inl.h"
}  // namespace ref
namespace avx2 {
#include "kernels/generic/table-inl.h"
}  // namespace avx2
namespace avx512 {
#include "kernels/generic/table-inl.h"
}  // namespace avx512

namespace {

KernelTable make_amx_table() {
  KernelTable table = avx512::make_table("amx");
  for (const DTypeInfo& info : kDTypeInfos) {
    table.formats[static_cast<int>(info.dtype)].matmul = amx::matmul_of(info.dtype);
  }
  table.split.matmul = amx::split_matmul;
  return table;
}

struct Candidate {
  KernelTable table;
  bool runs_here;
};

// Best first.
const Candidate* candidates() {
  static const CpuFeatures kFeatures = detect_cpu_features();
  static const Candidate kCandidates[] = {
      {make_amx_table(), kFeatures.amx_int8},
      {avx512::make_table("avx512"), kFeatures.avx512_vnni},
      {avx2::make_table("avx2"), kFeatures.avx2_fma_f16c},
      {ref::make_table("ref"), true},
  };
  return kCandidates;
}
static_assert(std::size(kIsas) == 4);

}  // namespace

const KernelTable* find_table(const char* isa) {
  for (int i = 0; i < static_cast<int>(std::size(kIsas)); ++i) {
    const Candidate& candidate = candidates()[i];
    if (std::strcmp(candidate.table.isa, isa) == 0) return candidate.runs_here ? &candidate.table : nullptr;
  }
  return nullptr;
}

const KernelTable& best_table() {
  const Candidate* candidate = candidates();
  while (!candidate->runs_here) ++candidate;
  return candidate->table;
}

}  // namespace kvasir::kernels
