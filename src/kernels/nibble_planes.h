// The head's format: the bytes of a Q8_0 matrix cut into two planes of nibbles, so that a pass over the high
// one, a little over half of the bytes, bounds every logit, and the low one is read only where the greatest
// may be.
//
// A code c (the file's signed value + 128) is 16 high + low. A row's product with the inputs x is
//   sum_b s_b sum_i (16 high_i + 7.5 - 128) x_i  +  sum_b s_b sum_i (low_i - 7.5) x_i,
// and by Cauchy and Schwarz the second part, which the high plane does not know, is within
//   sum_b |s_b| ||low_b - 7.5|| ||x_b||.
// The norms ||low_b - 7.5|| are kept beside the high nibbles, a byte for a row's block. That a search for the
// greatest inner product may skip what such a bound rules out is known from Teflioudi et al. 2015 (LEMP) and
// Li et al. 2017 (FEXIPRO); here the bound comes from the bits of the weights themselves.
//
// Both planes are sequences of groups of 16 rows; a group is a sequence of units as packed.h has them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/packed.h"
#include "kernels/table.h"

namespace kvasir::kernels {

inline constexpr int kBlocksPerNibblePlaneUnit = 4;

struct alignas(64) PackedHighPlane {
  static constexpr int kBits = 4, kZeroShift = 3;  // (high - 8) * 16 = the code's high part - 128
  static constexpr int kBlocks = kBlocksPerNibblePlaneUnit;
  PackedNibbles nibbles[kBlocks];
  PackedHalf scales[kBlocks][kPackedRows];
  std::uint8_t low_norms[kBlocks][kPackedRows];  // ||low - 7.5|| * kLowNormUnits, rounded up
};
struct alignas(64) PackedLowPlane {
  static constexpr int kBlocks = kBlocksPerNibblePlaneUnit;
  PackedNibbles nibbles[kBlocks];
};
static_assert(sizeof(PackedHighPlane) == 19 * 64);
static_assert(sizeof(PackedLowPlane) == 16 * 64);

inline constexpr float kMiddleOfLow = 7.5f;
inline constexpr float kLowNormUnits = 6.0f;  // 7.5 * sqrt(32) * 6 = 254.6

// Both halves of a unit: what the matmul of all bits decodes.
struct NibblePlaneUnit {
  static constexpr DType kDType = DType::kQ8_0;
  static constexpr int kBits = 8, kZeroShift = 7;
  static constexpr int kBlocks = kBlocksPerNibblePlaneUnit;
  const PackedHighPlane& high;
  const PackedLowPlane& low;
};
struct NibblePlaneUnits {
  const PackedHighPlane* high;
  const PackedLowPlane* low;

  NibblePlaneUnit operator[](std::int64_t i) const { return {high[i], low[i]}; }
};
inline NibblePlaneUnits nibble_plane_units(const void* high, const void* low, std::int64_t k,
                                           std::int64_t group) {
  const std::int64_t first = group * units_of<NibblePlaneUnit>(k);
  return {static_cast<const PackedHighPlane*>(high) + first, static_cast<const PackedLowPlane*>(low) + first};
}

// The units of a group of any block format, by index.
template <class Unit>
auto units_at(const MatmulArgs& args, std::int64_t group) {
  if constexpr (std::is_same_v<Unit, NibblePlaneUnit>) {
    return nibble_plane_units(args.weights, args.low_weights, args.k, group);
  } else {
    return static_cast<const Unit*>(args.weights) + group * units_of<Unit>(args.k);
  }
}

// The inputs of a row are far from even, so the low nibbles that meet its largest groups of 4 make most of
// the difference: a refined bound knows these exactly.
inline constexpr int kExactGroupsOf4 = 16;

struct ExactGroupOf4 {
  std::int32_t block;
  std::int32_t group_of_4;
  // ||x_b|| less what is left of it without the exact groups of 4; in the first of a block, 0 in its others.
  float norm_drop;
};

// The bounds' view of a quantised row; input_norms [k / 32] follow. Norms count in units of
// 1 / kLowNormUnits.
struct BoundInputs {
  std::int32_t num_exact;  // at most kExactGroupsOf4
  ExactGroupOf4 exact[kExactGroupsOf4];

  const float* norms() const { return reinterpret_cast<const float*>(this + 1); }
  float* norms() { return reinterpret_cast<float*>(this + 1); }
};

// NibblePlaneKernels with packing filled in.
NibblePlaneKernels nibble_plane_packing();

}  // namespace kvasir::kernels
