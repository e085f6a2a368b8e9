// Packed weights of which two of every four neighbours in a row are zeros (2:4), for a bench alone.
//
// A group has 16 rows, one row per lane, as in kernels/packed.h. A block of 32 inputs keeps 16 codes of each row, in four
// vectors: byte 4 r + i of vector j is kept code i of row r among inputs 8 j .. 8 j + 7. Codes 0 and 1 are of inputs 8 j to
// 8 j + 3, codes 2 and 3 of those after them. Bits 2 j and 2 j + 1 of the same byte of `places` say which of the four.
#pragma once

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/packed.h"

namespace kvasir::bench {

using SparsePlaces = std::uint8_t[64];

// 5.5 bits a weight.
struct alignas(64) SparseQ8_0 {
  static constexpr DType kDType = DType::kQ8_0;
  static constexpr int kBits = 8, kBlocks = 2;
  kernels::PackedHalf scales[kBlocks][kernels::kPackedRows];
  SparsePlaces places[kBlocks];
  std::uint8_t codes[kBlocks][4][64];  // the file's signed value xor 0x80
};

// 3.5 bits a weight.
struct alignas(64) SparseQ4_0 {
  static constexpr DType kDType = DType::kQ4_0;
  static constexpr int kBits = 4, kBlocks = 2;
  kernels::PackedHalf scales[kBlocks][kernels::kPackedRows];
  SparsePlaces places[kBlocks];
  std::uint8_t
      nibbles[kBlocks][2]
             [64];  // vector j in the low nibbles of nibbles[j], or in the high ones of nibbles[j - 2]
};

static_assert(sizeof(SparseQ8_0) == 11 * 64);
static_assert(sizeof(SparseQ4_0) == 7 * 64);

// out = one token's activations x W^T, all pointers 64-byte aligned but out. Activations have no outlier codes.
struct SparseArgs {
  const void* units;  // [num_groups, k / 64]
  std::int64_t k;     // a multiple of 64
  std::int64_t num_groups;
  const kernels::ActivationBlock* x;  // [k / 32]
  float* out;                         // [num_groups * 16]
};
using SparseMatmul = void (*)(const SparseArgs&);

// By the name of the instruction set, avx2 or avx512; null where there is no such kernel. Results have the bits of the dense
// kernels on the same matrix with its zeros.
SparseMatmul sparse_matmul_of(DType dtype, const char* isa);

}  // namespace kvasir::bench
