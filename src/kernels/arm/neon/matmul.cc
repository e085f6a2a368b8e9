#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/activation.h"
#include "kernels/arm/kernels.h"
#include "kernels/arm/neon/dot.h"
#include "kernels/arm/neon/panel.h"
#include "kernels/byte_columns.h"
#include "kernels/nibble_planes.h"
#include "kernels/packed.h"
#include "kernels/prefetch.h"
#include "kernels/w8a8.h"

namespace kvasir::kernels::neon {

#include "kernels/generic/matmul/tiles-inl.h"
// After the tiles:
#include "kernels/generic/matmul/blocks-inl.h"
#include "kernels/generic/matmul/byte_columns-inl.h"
#include "kernels/generic/matmul/columns-inl.h"
#include "kernels/generic/matmul/panel-inl.h"
#include "kernels/generic/matmul/panel_quartet-inl.h"
#include "kernels/generic/matmul/panels-inl.h"
// After the panels:
#include "kernels/generic/matmul/nibble_planes-inl.h"
#include "kernels/generic/matmul/table-inl.h"
#include "kernels/generic/matmul/w8a8-inl.h"

}  // namespace kvasir::kernels::neon
