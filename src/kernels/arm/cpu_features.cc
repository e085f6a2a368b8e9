#include "kernels/arm/cpu_features.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace kvasir {

ArmFeatures detect_arm_features() {
  ArmFeatures features;
#if defined(__aarch64__) && defined(__linux__)
  // As Linux has them for good (its Documentation/arch/arm64/elf_hwcaps.rst); an old <asm/hwcap.h> lacks some.
  constexpr unsigned long kHwcapAsimdDp = 1ul << 20, kHwcap2I8mm = 1ul << 13;
  features.dotprod = (getauxval(AT_HWCAP) & kHwcapAsimdDp) != 0;
  features.i8mm = features.dotprod && (getauxval(AT_HWCAP2) & kHwcap2I8mm) != 0;
#endif
  return features;
}

}  // namespace kvasir
