// Which instruction sets there are, and which of them this host runs.
#include <cstring>

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

struct Candidate {
  KernelTable table;
  bool runs_here;
};

// Best first.
const Candidate* candidates() {
  static const CpuFeatures kFeatures = detect_cpu_features();
  static const Candidate kCandidates[] = {
      {avx512::make_table("avx512"), kFeatures.avx512_vnni},
      {avx2::make_table("avx2"), kFeatures.avx2_fma_f16c},
      {ref::make_table("ref"), true},
  };
  return kCandidates;
}
constexpr int kNumCandidates = 3;

}  // namespace

const KernelTable* find_table(const char* isa) {
  for (int i = 0; i < kNumCandidates; ++i) {
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
