#include "base/cpu_features.h"

namespace kvasir {

CpuFeatures detect_cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  // The compiler's run-time support reads CPUID and XGETBV.
  __builtin_cpu_init();
  features.avx2_fma_f16c =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  features.avx512_vnni = features.avx2_fma_f16c && __builtin_cpu_supports("avx512f") &&
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#endif
  return features;
}

}  // namespace kvasir
