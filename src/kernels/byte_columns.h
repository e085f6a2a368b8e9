// Small matrices of adapters in a byte a weight: each row has one scale, and is multiplied by float activations.
//
// A group of 16 rows is [k][16 rows] codes, filled up to whole cache lines, and 16 scales. A weight is code * scale, the
// greatest of a row 127 * scale. An output is scale * ((s0 + s1) + (s2 + s3)), where s_c sums code * x over the inputs i with
// i % 4 == c, one fused multiply-add each, in order: four chains, for a row of few inputs is not hidden behind others.
#pragma once

#include <cstdint>

#include "kernels/packed.h"
#include "kernels/table.h"

namespace kvasir::kernels {

inline constexpr int kByteChains = 4;

constexpr std::int64_t byte_codes_bytes(std::int64_t k) { return (k * kPackedRows + 63) / 64 * 64; }

// A group, at its first code.
struct ByteColumns {
  const std::int8_t* codes;  // [k][kPackedRows]
  const float* scales;       // [kPackedRows]
};

inline ByteColumns byte_columns(const MatmulArgs& args, std::int64_t group) {
  const std::int64_t codes_bytes = byte_codes_bytes(args.k);
  const auto* codes = static_cast<const std::int8_t*>(args.weights) + group * (codes_bytes + kPackedRows * std::int64_t{sizeof(float)});
  return {codes, reinterpret_cast<const float*>(codes + codes_bytes)};
}

// FormatKernels with packing filled in; pack_group takes rows of floats.
FormatKernels byte_column_packing();

}  // namespace kvasir::kernels
