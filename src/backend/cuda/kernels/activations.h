// Quantised activations (kernels/activation.h) as kernels read them.
#pragma once

#include <cstdint>

#include "backend/cuda/kernels/codes.h"
#include "backend/cuda/simt/simt.h"
#include "kernels/activation.h"

namespace kvasir::cuda {

using kernels::ActivationBlock;
using kernels::kActivationBlock;
using kernels::kOutlierShift;
using kernels::kTokensPerActivationTile;
using kernels::OutlierCodes;

// A tile of at most 16 tokens: block b of its token t is blocks[b * width + t].
struct TileView {
  const ActivationBlock* blocks;
  const OutlierCodes* outliers;
  const std::uint8_t* outlier_groups;  // [blocks][16]
  std::int64_t width;
};

// The tile that begins with token `first`, a multiple of 16, of num_tokens.
KVASIR_DEVICE TileView tile_view(const void* quantized, std::int64_t k, std::int64_t first,
                                 std::int64_t num_tokens) {
  const std::int64_t left = num_tokens - first, num_blocks = k / kActivationBlock;
  const std::int64_t width = left < kTokensPerActivationTile ? left : kTokensPerActivationTile;
  const auto* bytes = static_cast<const char*>(quantized) + kernels::activation_bytes(k, first);
  const auto* blocks = reinterpret_cast<const ActivationBlock*>(bytes);
  const auto* outliers = reinterpret_cast<const OutlierCodes*>(blocks + num_blocks * width);
  return {blocks, outliers, reinterpret_cast<const std::uint8_t*>(outliers + num_blocks * width), width};
}

// The b operand of mma_s8: bytes 4 j .. 4 j + 3 of 32 codes, and those 16 further on.
KVASIR_DEVICE void load_inputs(const std::int8_t* codes, int j, bool exists, std::uint32_t (&b)[2]) {
  b[0] = exists ? simt::load4(codes + 4 * j) : 0;
  b[1] = exists ? simt::load4(codes + 4 * j + 16) : 0;
}

// Adds the products of a block to the sums of each half, or of all inputs to the first.
template <class Unit>
KVASIR_DEVICE void add_products(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                std::int32_t (&dots)[kSums<Unit>][4]) {
  if constexpr (kSums<Unit> == 1) {
    simt::mma_s8(dots[0], a, b);
  } else {
    const std::uint32_t low[2] = {a[0], a[1]}, high[2] = {a[2], a[3]}, b_low[1] = {b[0]}, b_high[1] = {b[1]};
    simt::mma_s8(dots[0], low, b_low);
    simt::mma_s8(dots[1], high, b_high);
  }
}

// The token's factors of what a block adds to an output.
struct TokenTerms {
  float scale;
  float sums[2];  // what the minima meet
};

template <class Unit>
KVASIR_DEVICE TokenTerms token_terms(const ActivationBlock* x) {
  TokenTerms terms = {simt::load(&x->scale), {}};
  if constexpr (kHasMinimum<Unit> && kHasHalves<Unit>) {
    const std::int32_t offset = simt::load(&x->offset), high = simt::load(&x->offset_high);
    terms.sums[0] = static_cast<float>(offset - high) * terms.scale;
    terms.sums[1] = static_cast<float>(high) * terms.scale;
  } else if constexpr (kHasMinimum<Unit>) {
    terms.sums[0] = simt::load(&x->scaled_sum);
  }
  return terms;
}

// Where the integer sums of a token's block start, for codes that have a zero point besides 0 and are not signed.
template <class Unit>
KVASIR_DEVICE std::int32_t start_of_dot(const ActivationBlock* x, int sum) {
  if constexpr (Unit::kBits == 8 || Unit::kZeroShift == 0) {
    return 0;
  } else if constexpr (kSums<Unit> == 1) {
    return simt::load(&x->offset) >> (7 - Unit::kZeroShift);
  } else {
    const std::int32_t high = simt::load(&x->offset_high);
    return (sum == 1 ? high : simt::load(&x->offset) - high) >> (7 - Unit::kZeroShift);
  }
}

}  // namespace kvasir::cuda
