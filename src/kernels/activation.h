// Layout of quantised activations: what quantize_row writes and the integer matmuls read.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace kvasir::kernels {

// 32 consecutive inputs of one token: x[i] is about scale * q[i].
//
// The sums serve the weights' zero points and minima. A kernel whose codes have the zero point 128 starts its
// integer sum at `offset` and ends with sum((code - 128) * q); other zero points are a power of two below. A
// minimum m shared by the block adds m * scaled_sum.
struct ActivationBlock {
  std::int8_t q[32];         // within [-127, 127]
  float scale;               // amax / 127, or 0 where that is below kLeastScale
  float scaled_sum;          // scale * sum(q)
  std::int32_t offset;       // -128 * sum(q)
  std::int32_t offset_high;  // -128 * sum(q[16..31])
};
static_assert(sizeof(ActivationBlock) == 48);

// Inputs beyond this are refused as infinity is: no model means them, and their products might overflow.
inline constexpr float kLargestInput = 0x1p100f;
// Blocks whose scale would be smaller are taken as zeros, so that the product with a weight's scale (2^-24 or
// more, and some kernels keep it divided by 16) is never subnormal and rounds alike in every kernel.
inline constexpr float kLeastScale = 0x1p-96f;

// q is x * inverse_of_scale, rounded to nearest even.
inline float scale_or_zero(float scale) { return scale >= kLeastScale ? scale : 0.0f; }
inline float activation_scale(float amax) { return scale_or_zero(amax / 127.0f); }
inline float inverse_of_scale(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }

// A few channels of a transformer carry values far above the rest (Dettmers et al. 2022), and the rounding of
// their blocks makes most of the error. So a block whose largest input exceeds kOutlierRatio times the row's
// mean of block maxima is an outlier: what rounding left over is quantised once more, as a second block of
// 1/254 the scale that the same weights multiply. README's closeness table shows what it buys beside a
// program that rounds once.
inline constexpr float kOutlierRatio = 2.0f;
inline constexpr float kResidualScale = 1.0f / 254.0f;

inline float outlier_threshold(float sum_of_maxima, std::int64_t num_blocks) {
  return kOutlierRatio * (sum_of_maxima / static_cast<float>(num_blocks));
}

// Tokens lie in tiles of 16, the last with what is left. In a tile the blocks of its tokens at the same
// inputs are neighbours, so that a kernel which multiplies them by the same weights reads one linear stream.
//
// A tile of `width` tokens: block b of its token t is blocks[b * width + t], and so is its residual, which is
// all zeros where the block is no outlier. Which blocks are outliers depends on the token's row alone.
struct ActivationTile {
  ActivationBlock* blocks;     // [k / 32, width]
  ActivationBlock* residuals;  // [k / 32, width]
  std::uint8_t* outliers;      // [k / 32, 16], 1 or 0 for each token; 0 beyond width
  std::int64_t width;
};
struct ConstActivationTile {
  const ActivationBlock* blocks;
  const ActivationBlock* residuals;
  const std::uint8_t* outliers;
  std::int64_t width;

  bool is_outlier(std::int64_t block, std::int64_t token) const {
    return outliers[block * kTokensPerActivationTile + token] != 0;
  }
};

constexpr std::int64_t activation_tile_bytes(std::int64_t k, std::int64_t width) {
  const std::int64_t bytes =
      k / 32 * (2 * width * static_cast<std::int64_t>(sizeof(ActivationBlock)) + kTokensPerActivationTile);
  return (bytes + 63) / 64 * 64;
}

// Bytes of num_tokens rows of k inputs; also where token num_tokens begins when it is the first of a tile.
constexpr std::int64_t activation_bytes(std::int64_t k, std::int64_t num_tokens) {
  const std::int64_t rest = num_tokens % kTokensPerActivationTile;
  return num_tokens / kTokensPerActivationTile * activation_tile_bytes(k, kTokensPerActivationTile) +
         (rest > 0 ? activation_tile_bytes(k, rest) : 0);
}

// The tile that starts at first_token, a multiple of 16, of num_tokens.
inline ConstActivationTile activation_tile(const void* activations, std::int64_t k, std::int64_t first_token,
                                           std::int64_t num_tokens) {
  const std::int64_t left = num_tokens - first_token;
  const std::int64_t width = left < kTokensPerActivationTile ? left : kTokensPerActivationTile;
  const auto* blocks = reinterpret_cast<const ActivationBlock*>(static_cast<const char*>(activations) +
                                                                activation_bytes(k, first_token));
  const ActivationBlock* residuals = blocks + k / 32 * width;
  return {blocks, residuals, reinterpret_cast<const std::uint8_t*>(residuals + k / 32 * width), width};
}
inline ActivationTile activation_tile(void* activations, std::int64_t k, std::int64_t first_token,
                                      std::int64_t num_tokens) {
  const ConstActivationTile tile =
      activation_tile(static_cast<const void*>(activations), k, first_token, num_tokens);
  return {const_cast<ActivationBlock*>(tile.blocks), const_cast<ActivationBlock*>(tile.residuals),
          const_cast<std::uint8_t*>(tile.outliers), tile.width};
}

// One token's column of its tile. The last one also keeps the flags of the columns that do not exist.
struct ActivationRow {
  ActivationBlock* blocks;     // block b at b * width
  ActivationBlock* residuals;  // the same
  std::uint8_t* outliers;      // block b at b * 16
  std::int64_t width;
  int num_flags;  // of a block

  ActivationBlock& block(std::int64_t b) const { return blocks[b * width]; }
  ActivationBlock& residual(std::int64_t b) const { return residuals[b * width]; }
  void set_outlier(std::int64_t b, bool is_outlier) const {
    std::uint8_t* flags = outliers + b * kTokensPerActivationTile;
    flags[0] = is_outlier ? 1 : 0;
    for (int i = 1; i < num_flags; ++i) flags[i] = 0;
  }
};
inline ActivationRow activation_row(void* activations, std::int64_t k, std::int64_t token,
                                    std::int64_t num_tokens) {
  const std::int64_t column = token % kTokensPerActivationTile;
  const ActivationTile tile = activation_tile(activations, k, token - column, num_tokens);
  const bool is_last = column == tile.width - 1;
  return {tile.blocks + column, tile.residuals + column, tile.outliers + column, tile.width,
          is_last ? static_cast<int>(kTokensPerActivationTile - column) : 1};
}

// Writes the row of a token whose inputs cannot be quantised.
inline void zero_row(const ActivationRow& row, std::int64_t num_blocks) {
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    row.block(b) = {};
    row.residual(b) = {};
    row.set_outlier(b, false);
  }
}

}  // namespace kvasir::kernels
