// Layout of quantised activations: what quantize_row writes and the integer matmuls read.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace kvasir::kernels {

// 32 consecutive inputs of one token: x[i] is about scale * (q[i] + 128 * outliers[i]), where the outlier
// codes (OutlierCodes) are zeros but for a few large inputs.
//
// The sums serve the weights' zero points and minima. A kernel whose codes have the zero point 128 adds
// `offset` to its integer sum and so ends with sum((code - 128) * (q + 128 * outliers)); other zero points
// are a power of two below. A minimum m shared by the block adds m * scaled_sum.
struct ActivationBlock {
  std::int8_t q[32];         // within [-127, 127]
  float scale;               // block_scale
  float scaled_sum;          // scale * sum(q + 128 * outliers)
  std::int32_t offset;       // -128 * sum(q + 128 * outliers)
  std::int32_t offset_high;  // the same of the inputs 16 to 31 alone
};
static_assert(sizeof(ActivationBlock) == 48);

// The part of a block's inputs beyond what eight bits hold.
struct OutlierCodes {
  std::int8_t q[32];  // within [-127, 127]
};

// Inputs beyond this are refused as infinity is: no model means them, and their products might overflow.
inline constexpr float kLargestInput = 0x1p100f;
// Blocks whose scale would be smaller are taken as zeros, so that the product with a weight's scale (2^-24 or
// more, and some kernels keep it divided by 16) is never subnormal and rounds alike in every kernel.
inline constexpr float kLeastScale = 0x1p-96f;

// A few channels of a transformer carry values far above the rest (Dettmers et al. 2022). A scale that suits
// them rounds the other inputs of their blocks to little, which makes most of the error. So the four inputs
// of a group of 4 are *outliers* when the largest of them exceeds kOutlierRatio times the row's typical block
// maximum. A block's scale is that of its other inputs, and the outliers get outlier codes besides. Kernels
// multiply only the groups of 4 that have one; they are few. README's closeness table shows what that buys
// beside a program that lets outliers set the scale.
//
// Typical is the power mean of the maxima with exponent 1/4. The outliers themselves hardly raise it, so that
// a row with some has a low threshold, and an even row, which would gain little, has hardly an outlier.
inline constexpr float kOutlierRatio = 1.45f;

inline float fourth_root(float x) { return __builtin_sqrtf(__builtin_sqrtf(x)); }
inline float outlier_threshold(float sum_of_fourth_roots, std::int64_t num_blocks) {
  const float root = sum_of_fourth_roots / static_cast<float>(num_blocks);
  return kOutlierRatio * ((root * root) * (root * root));
}

// The two parts of a code within [-16256, 16256] are q = code - 128 * outliers and the outlier code.
inline constexpr int kOutlierShift = 7;
inline constexpr float kLargestCode = 127.0f * (1 << kOutlierShift);
constexpr int outlier_code(int code) {
  const bool fits = -127 <= code && code <= 127;
  return fits ? 0 : (code + (1 << (kOutlierShift - 1))) >> kOutlierShift;
}

// The scale of inputs whose largest magnitude is `largest`, and that of all but the outliers `inlier`. The
// code of an input x is x * inverse_of_scale(scale), rounded to nearest even.
inline float block_scale(float inlier, float largest) {
  if (largest / 127.0f < kLeastScale) return 0.0f;
  const float scale = inlier / 127.0f > kLeastScale ? inlier / 127.0f : kLeastScale;
  return scale > largest / kLargestCode ? scale : largest / kLargestCode;
}
inline float inverse_of_scale(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }

// Tokens lie in tiles of 16, the last with what is left. In a tile the blocks of its tokens at the same
// inputs are neighbours, so that a kernel which multiplies them by the same weights reads one linear stream.
//
// A tile of `width` tokens: block b of its token t is blocks[b * width + t], and so are its outlier codes.
// They are a function of the token's row alone.
struct ActivationTile {
  ActivationBlock* blocks;  // [k / 32, width]
  OutlierCodes* outliers;   // [k / 32, width]
  std::uint8_t*
      outlier_groups;  // [k / 32, 16]: bit j where group of 4 j of the outlier codes is not all zeros
  std::int64_t width;  // flags beyond it are 0
};
struct ConstActivationTile {
  const ActivationBlock* blocks;
  const OutlierCodes* outliers;
  const std::uint8_t* outlier_groups;
  std::int64_t width;
};

// Kernels work on up to a whole tile at once and read the tokens that it lacks, to no effect: what they read
// there must be somebody's memory.
inline constexpr std::int64_t kReadableTailBytes = (kTokensPerActivationTile - 1) * sizeof(ActivationBlock);

constexpr std::int64_t activation_tile_bytes(std::int64_t k, std::int64_t width) {
  const std::int64_t token_bytes = sizeof(ActivationBlock) + sizeof(OutlierCodes);
  const std::int64_t bytes = k / 32 * (width * token_bytes + kTokensPerActivationTile) + kReadableTailBytes;
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
  const auto* outliers = reinterpret_cast<const OutlierCodes*>(blocks + k / 32 * width);
  return {blocks, outliers, reinterpret_cast<const std::uint8_t*>(outliers + k / 32 * width), width};
}
inline ActivationTile activation_tile(void* activations, std::int64_t k, std::int64_t first_token,
                                      std::int64_t num_tokens) {
  const ConstActivationTile tile = activation_tile(static_cast<const void*>(activations), k, first_token,
                                                   num_tokens);
  return {const_cast<ActivationBlock*>(tile.blocks), const_cast<OutlierCodes*>(tile.outliers),
          const_cast<std::uint8_t*>(tile.outlier_groups), tile.width};
}

// A block of four tokens, whose activations and outlier codes are neighbours.
struct QuartetBlock {
  const ActivationBlock* x;
  const OutlierCodes* outliers;
  unsigned outlier_groups;  // those that any of the tokens has; the others' zeros change no bit of their sums
};

// One token's column of its tile. The last one also keeps the flags of the columns that do not exist.
struct ActivationRow {
  ActivationBlock* blocks;       // block b at b * width
  OutlierCodes* outlier_codes;   // the same
  std::uint8_t* outlier_groups;  // block b at b * 16
  std::int64_t width;
  int num_flags;  // of a block

  ActivationBlock& block(std::int64_t b) const { return blocks[b * width]; }
  OutlierCodes& outliers(std::int64_t b) const { return outlier_codes[b * width]; }
  void set_outlier_groups(std::int64_t b, int groups_of_4) const {
    std::uint8_t* flags = outlier_groups + b * kTokensPerActivationTile;
    flags[0] = static_cast<std::uint8_t>(groups_of_4);
    for (int i = 1; i < num_flags; ++i) flags[i] = 0;
  }
};
inline ActivationRow activation_row(void* activations, std::int64_t k, std::int64_t token,
                                    std::int64_t num_tokens) {
  const std::int64_t column = token % kTokensPerActivationTile;
  const ActivationTile tile = activation_tile(activations, k, token - column, num_tokens);
  const bool is_last = column == tile.width - 1;
  return {tile.blocks + column, tile.outliers + column, tile.outlier_groups + column, tile.width,
          is_last ? static_cast<int>(kTokensPerActivationTile - column) : 1};
}

// Copies a row of num_blocks blocks, bit by bit, into a column of another tile.
inline void copy_row(const ConstActivationTile& from, std::int64_t column, std::int64_t num_blocks,
                     const ActivationRow& to) {
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    to.block(b) = from.blocks[b * from.width + column];
    to.outliers(b) = from.outliers[b * from.width + column];
    to.set_outlier_groups(b, from.outlier_groups[b * kTokensPerActivationTile + column]);
  }
}

// Writes the row of a token whose inputs cannot be quantised.
inline void zero_row(const ActivationRow& row, std::int64_t num_blocks) {
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    row.block(b) = {};
    row.outliers(b) = {};
    row.set_outlier_groups(b, 0);
  }
}

}  // namespace kvasir::kernels
