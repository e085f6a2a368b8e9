// Matmul of block formats on AMX from a tile of tokens on. Fewer tokens, and all other kernels, are
// AVX-512's.
#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/activation.h"
#include "kernels/nibble_planes.h"
#include "kernels/packed.h"
#include "kernels/prefetch.h"
#include "kernels/x86/amx/panel.h"
#include "kernels/x86/amx/tile.h"
#include "kernels/x86/kernels.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AMX)
namespace kvasir::kernels::amx {

#include "kernels/generic/matmul/tiles-inl.h"
// After the tiles:
#include "kernels/generic/matmul/blocks-inl.h"
#include "kernels/generic/matmul/panel-inl.h"
// After the panel:
#include "kernels/x86/amx/tiles-inl.h"
// After what multiplies by it:
#include "kernels/generic/matmul/panels-inl.h"

void nibble_plane_matmul(const MatmulArgs& args) { block_matmul<NibblePlaneUnit>(args); }

// Floats are AVX-512's. So is what has halves of 16 inputs, as Q6_K: they leave too little to a tile.
template <class Unit>
MatmulKernel matmul_of_unit() {
  if constexpr (kIsColumn<Unit>) {
    return avx512::matmul_of(Unit::kDType);
  } else if constexpr (kSums<Unit> == 2) {
    return avx512::matmul_of(Unit::kDType);
  } else {
    return block_matmul<Unit>;
  }
}

#include "kernels/generic/matmul/matmul_of-inl.h"

}  // namespace kvasir::kernels::amx
KVASIR_TARGET_END
