// The matmul of every format. Included inside an ISA's namespace and target region, after the tiles.

template <class Unit>
MatmulKernel matmul_of_unit() {
  if constexpr (kIsColumn<Unit>) {
    return matmul<ColumnTile<Unit>>;
  } else {
    return block_matmul<Unit>;
  }
}

MatmulKernel matmul_of(DType dtype) {
  switch (dtype) {
#define KVASIR_FORMAT(id, Format) \
  case DType::id:                 \
    return matmul_of_unit<UnitOf<quant::Format>>();
#include "quant/formats.def"
#undef KVASIR_FORMAT
  }
  return nullptr;
}
