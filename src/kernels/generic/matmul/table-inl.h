// The matmul of every format by tiles. Included inside an ISA's namespace and target region, after the tiles.

template <class Unit>
MatmulKernel matmul_of_unit() {
  if constexpr (kIsColumn<Unit>) {
    return matmul<ColumnTile<Unit>>;
  } else {
    return block_matmul<Unit>;
  }
}

#include "kernels/generic/matmul/matmul_of-inl.h"
