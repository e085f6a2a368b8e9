#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/activation.h"
#include "kernels/avx2/dot.h"
#include "kernels/avx2/panel.h"
#include "kernels/matmul_kernels.h"
#include "kernels/packed.h"
#include "kernels/prefetch.h"
#include "kernels/split.h"
#include "kernels/wide.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

#include "kernels/generic/matmul-inl.h"
#include "kernels/generic/matmul_blocks-inl.h"
#include "kernels/generic/matmul_columns-inl.h"
#include "kernels/generic/matmul_panel-inl.h"
#include "kernels/generic/matmul_panel_quartet-inl.h"
#include "kernels/generic/matmul_panels-inl.h"
#include "kernels/generic/matmul_split-inl.h"
#include "kernels/generic/matmul_table-inl.h"
#include "kernels/generic/matmul_wide-inl.h"

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
