// Matmul of block formats on AMX from a tile of tokens on. Fewer tokens, and all other kernels, are
// AVX-512's.
#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/activation.h"
#include "kernels/amx/panel.h"
#include "kernels/amx/tile.h"
#include "kernels/matmul_kernels.h"
#include "kernels/packed.h"
#include "kernels/prefetch.h"
#include "kernels/split.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AMX)
namespace kvasir::kernels::amx {

#include "kernels/generic/matmul-inl.h"
#include "kernels/generic/matmul_blocks-inl.h"
#include "kernels/generic/matmul_panel-inl.h"
// After the panel:
#include "kernels/amx/matmul_tiles-inl.h"
#include "kernels/generic/matmul_panels-inl.h"

void split_matmul(const MatmulArgs& args) { block_matmul<SplitUnit>(args); }

MatmulKernel matmul_of(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
      return block_matmul<PackedQ8_0>;
    case DType::kQ4_0:
      return block_matmul<PackedQ4_0>;
    case DType::kQ4_1:
      return block_matmul<PackedQ4_1>;
    case DType::kQ5_0:
      return block_matmul<PackedQ5_0>;
    case DType::kQ5_1:
      return block_matmul<PackedQ5_1>;
    case DType::kQ4_K:
      return block_matmul<PackedQ4_K>;
    case DType::kQ5_K:
      return block_matmul<PackedQ5_K>;
    default:  // Q6_K's halves of 16 inputs leave too little to a tile
      return avx512::matmul_of(dtype);
  }
}

}  // namespace kvasir::kernels::amx
KVASIR_TARGET_END
