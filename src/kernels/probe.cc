#include "kernels/probe.h"

#include "base/cpu_features.h"

namespace kvasir::kernels {

const ProbeLoops& probe_loops() {
  const CpuFeatures features = detect_cpu_features();
  if (features.avx512_vnni) return avx512::kProbeLoops;
  if (features.avx2_fma_f16c) return avx2::kProbeLoops;
  return ref::kProbeLoops;
}

}  // namespace kvasir::kernels
