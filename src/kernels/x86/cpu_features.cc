#include "kernels/x86/cpu_features.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kvasir {
namespace {

// Tiles are state that Linux saves only for processes that asked (its Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__) && defined(SYS_arch_prctl)
  constexpr unsigned kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;  // leaf 7, EDX
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kAmxTile) == 0 || (edx & kAmxInt8) == 0) return false;
  constexpr long kRequestXcompPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestXcompPermission, kTileData) == 0;
#else
  return false;
#endif
}

CpuFeatures ask_cpu() {
  CpuFeatures features;
#if defined(__x86_64__)
  // The compiler's run-time support reads CPUID and XGETBV.
  __builtin_cpu_init();
  features.avx2_fma_f16c = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                           __builtin_cpu_supports("f16c");
  features.avx512_vnni = features.avx2_fma_f16c && __builtin_cpu_supports("avx512f") &&
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  features.amx_int8 = features.avx512_vnni && may_use_tiles();
#endif
  return features;
}

}  // namespace

CpuFeatures detect_cpu_features() {
  static const CpuFeatures kFeatures = ask_cpu();  // once: virtual machines trap CPUID
  return kFeatures;
}

}  // namespace kvasir
