// Asking memory for what a kernel will read soon.
#pragma once

#include "kernels/force_inline.h"

namespace kvasir::kernels {

// Into L2: the first level can wait for fewer lines at a time than a core's share of the memory's bandwidth
// keeps on their way, and what waits there for long drives out what is in use. Any address is harmless.
KVASIR_FORCE_INLINE void prefetch_into_l2(const void* line) {
  constexpr int kToRead = 0, kIntoL2 = 2;
  __builtin_prefetch(line, kToRead, kIntoL2);
}

}  // namespace kvasir::kernels
