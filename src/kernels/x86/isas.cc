#include "kernels/activation.h"
#include "kernels/byte_columns.h"
#include "kernels/isa.h"
#include "kernels/nibble_planes.h"
#include "kernels/pack.h"
#include "kernels/x86/cpu_features.h"
#include "kernels/x86/kernels.h"

namespace kvasir::kernels {

namespace avx2 {
#include "kernels/generic/table-inl.h"
}  // namespace avx2
namespace avx512 {
#include "kernels/generic/table-inl.h"
}  // namespace avx512

namespace {

KernelTable make_amx_table() {
  KernelTable table = avx512::make_table("amx");
  for (const DTypeInfo& info : kDTypeInfos) {
    table.formats[static_cast<int>(info.dtype)].matmul = amx::matmul_of(info.dtype);
  }
  table.nibble_planes.matmul = amx::nibble_plane_matmul;
  return table;
}

}  // namespace

std::span<const Isa> native_isas() {
  static const CpuFeatures kFeatures = detect_cpu_features();
  static const Isa kIsas[] = {
      {make_amx_table(), &avx512::kProbeLoops, kFeatures.amx_int8},
      {avx512::make_table("avx512"), &avx512::kProbeLoops, kFeatures.avx512_vnni},
      {avx2::make_table("avx2"), &avx2::kProbeLoops, kFeatures.avx2_fma_f16c},
  };
  return kIsas;
}

}  // namespace kvasir::kernels
