// The matmul of every format. Included after matmul_of_unit(), which says it of a unit.

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
