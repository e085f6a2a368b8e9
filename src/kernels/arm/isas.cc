#include "kernels/activation.h"
#include "kernels/arm/cpu_features.h"
#include "kernels/arm/kernels.h"
#include "kernels/byte_columns.h"
#include "kernels/isa.h"
#include "kernels/nibble_planes.h"
#include "kernels/pack.h"

namespace kvasir::kernels {

namespace neon {
#include "kernels/generic/table-inl.h"
}  // namespace neon

// NEON's but for what multiplies bytes.
namespace dotprod {
using namespace neon;
#include "kernels/generic/table-inl.h"
}  // namespace dotprod

namespace {

KernelTable make_i8mm_table() {
  KernelTable table = dotprod::make_table("i8mm");
  for (const DTypeInfo& info : kDTypeInfos) {
    table.formats[static_cast<int>(info.dtype)].matmul = i8mm::matmul_of(info.dtype);
  }
  table.nibble_planes.matmul = i8mm::nibble_plane_matmul;
  return table;
}

}  // namespace

std::span<const Isa> native_isas() {
  static const ArmFeatures kFeatures = detect_arm_features();
  static const Isa kIsas[] = {
      {make_i8mm_table(), &dotprod::kProbeLoops, kFeatures.i8mm},
      {dotprod::make_table("dotprod"), &dotprod::kProbeLoops, kFeatures.dotprod},
      {neon::make_table("neon"), &neon::kProbeLoops, true},
  };
  return kIsas;
}

}  // namespace kvasir::kernels
