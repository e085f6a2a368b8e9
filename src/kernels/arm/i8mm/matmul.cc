// Matmul of block formats with SMMLA where there are tokens enough for a panel. Fewer tokens, and all other
// kernels, are those of SDOT.
#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/activation.h"
#include "kernels/arm/i8mm/panel.h"
#include "kernels/arm/kernels.h"
#include "kernels/nibble_planes.h"
#include "kernels/packed.h"
#include "kernels/prefetch.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_I8MM)
namespace kvasir::kernels::i8mm {

#include "kernels/generic/matmul/tiles-inl.h"
// After the tiles:
#include "kernels/generic/matmul/blocks-inl.h"
#include "kernels/generic/matmul/panel-inl.h"
#include "kernels/generic/matmul/panel_quartet-inl.h"
#include "kernels/generic/matmul/panels-inl.h"

void nibble_plane_matmul(const MatmulArgs& args) {
  if (panel_pays<NibblePlaneUnit>(args.num_tokens)) return panel_matmul<NibblePlaneUnit>(args);
  dotprod::nibble_plane_matmul(args);
}

template <class Unit>
void many_tokens_matmul(const MatmulArgs& args) {
  if (panel_pays<Unit>(args.num_tokens)) return panel_matmul<Unit>(args);
  dotprod::matmul_of(Unit::kDType)(args);
}

template <class Unit>
MatmulKernel matmul_of_unit() {
  if constexpr (kIsColumn<Unit>) {
    return dotprod::matmul_of(Unit::kDType);
  } else {
    return many_tokens_matmul<Unit>;
  }
}

#include "kernels/generic/matmul/matmul_of-inl.h"

}  // namespace kvasir::kernels::i8mm
KVASIR_TARGET_END
