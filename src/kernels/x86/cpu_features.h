// Which instruction set extensions this processor and operating system offer.
#pragma once

namespace kvasir {

struct CpuFeatures {
  bool avx2_fma_f16c = false;  // AVX2, FMA and F16C
  bool avx512_vnni = false;    // the above and AVX-512 F, BW, DQ, VL, VNNI
  bool amx_int8 = false;       // the above and AMX's tiles of bytes, which this process may use
};

// Asks CPUID, and XGETBV whether the system saves the w8a8 registers. Where there are tiles, asks Linux for
// leave to use them, which holds for all threads of the process from then on. Thread safe.
CpuFeatures detect_cpu_features();

}  // namespace kvasir
