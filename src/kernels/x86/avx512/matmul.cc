#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/activation.h"
#include "kernels/packed.h"
#include "kernels/prefetch.h"
#include "kernels/split.h"
#include "kernels/wide.h"
#include "kernels/x86/avx512/dot.h"
#include "kernels/x86/avx512/panel.h"
#include "kernels/x86/kernels.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {

#include "kernels/generic/matmul/blocks-inl.h"
#include "kernels/generic/matmul/columns-inl.h"
#include "kernels/generic/matmul/panel-inl.h"
#include "kernels/generic/matmul/panel_quartet-inl.h"
#include "kernels/generic/matmul/panels-inl.h"
#include "kernels/generic/matmul/split-inl.h"
#include "kernels/generic/matmul/table-inl.h"
#include "kernels/generic/matmul/tiles-inl.h"
#include "kernels/generic/matmul/wide-inl.h"

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
