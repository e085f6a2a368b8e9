// Packed weights: 16 rows together, one row per lane, in the order kernels stream them.
//
// A group of 16 rows is a sequence of units; a unit holds kBlocks blocks of 32 inputs, chosen so that it
// fills whole cache lines. Inside a block, "group of 4" j is inputs 4 j .. 4 j + 3 of all rows: 64 bytes,
// byte 4 r + i for row r and input 4 j + i, which is what one vpdpbusd consumes. Codes are the file's
// integers, unsigned; scales and minima are the file's bits. Nothing is rounded. Members lie as they come
// from memory fastest, by measurement: in the order of reading where that makes one stream.
//
// kBits is the width of a code; the code that stands for zero is 2^kZeroShift, or 0 when kZeroShift is 0.
#pragma once

#include <cstdint>

#include "quant/dtype.h"

namespace kvasir::kernels {

using PackedHalf = std::uint16_t;  // bits of an IEEE binary16

inline constexpr int kPackedRows = 16;
inline constexpr int kGroupsOf4PerBlock = 8;  // of one block
inline constexpr int kGroupOf4Bytes = 64;

// Codes of 4 bits: group of 4 j in the low nibbles of nibbles[j] for j < 4, in the high nibbles of nibbles[j
// - 4] above.
using PackedNibbles = std::uint8_t[4][kGroupOf4Bytes];
// Bit j of a byte is bit 4 of the code in group of 4 j.
using PackedFifthBits = std::uint8_t[kGroupOf4Bytes];
// Bits 2 (j % 4), 2 (j % 4) + 1 of a byte of plane j / 4 are bits 4 and 5 of the code in group of 4 j.
using PackedSixthBits = std::uint8_t[2][kGroupOf4Bytes];
using PackedBytes = std::uint8_t[kGroupsOf4PerBlock][kGroupOf4Bytes];

struct alignas(64) PackedQ4_0 {
  static constexpr DType kDType = DType::kQ4_0;
  static constexpr int kBits = 4, kZeroShift = 3;
  static constexpr int kBlocks = 2;
  PackedHalf scales[kBlocks][kPackedRows];
  PackedNibbles nibbles[kBlocks];
};

struct alignas(64) PackedQ4_1 {
  static constexpr DType kDType = DType::kQ4_1;
  static constexpr int kBits = 4, kZeroShift = 0;
  static constexpr int kBlocks = 1;
  PackedNibbles nibbles[kBlocks];
  PackedHalf scales[kBlocks][kPackedRows];
  PackedHalf mins[kBlocks][kPackedRows];
};

struct alignas(64) PackedQ5_0 {
  static constexpr DType kDType = DType::kQ5_0;
  static constexpr int kBits = 5, kZeroShift = 4;
  static constexpr int kBlocks = 2;
  PackedNibbles nibbles[kBlocks];
  PackedFifthBits high_bits[kBlocks];
  PackedHalf scales[kBlocks][kPackedRows];
};

struct alignas(64) PackedQ5_1 {
  static constexpr DType kDType = DType::kQ5_1;
  static constexpr int kBits = 5, kZeroShift = 0;
  static constexpr int kBlocks = 1;
  PackedNibbles nibbles[kBlocks];
  PackedFifthBits high_bits[kBlocks];
  PackedHalf scales[kBlocks][kPackedRows];
  PackedHalf mins[kBlocks][kPackedRows];
};

struct alignas(64) PackedQ8_0 {
  static constexpr DType kDType = DType::kQ8_0;
  static constexpr int kBits = 8, kZeroShift = 7;
  static constexpr int kBlocks = 2;
  PackedHalf scales[kBlocks][kPackedRows];
  PackedBytes codes[kBlocks];  // the file's signed value xor 0x80
};

struct alignas(64) PackedQ4_K {
  static constexpr DType kDType = DType::kQ4_K;
  static constexpr int kBits = 4, kZeroShift = 0;
  static constexpr int kBlocks = 8;
  PackedNibbles nibbles[kBlocks];
  std::uint8_t sub_scales[kBlocks][kPackedRows];
  std::uint8_t sub_mins[kBlocks][kPackedRows];
  PackedHalf scales[kPackedRows];
  PackedHalf min_scales[kPackedRows];
};

struct alignas(64) PackedQ5_K {
  static constexpr DType kDType = DType::kQ5_K;
  static constexpr int kBits = 5, kZeroShift = 0;
  static constexpr int kBlocks = 8;
  PackedNibbles nibbles[kBlocks];
  PackedFifthBits high_bits[kBlocks];
  std::uint8_t sub_scales[kBlocks][kPackedRows];
  std::uint8_t sub_mins[kBlocks][kPackedRows];
  PackedHalf scales[kPackedRows];
  PackedHalf min_scales[kPackedRows];
};

struct alignas(64) PackedQ6_K {
  static constexpr DType kDType = DType::kQ6_K;
  static constexpr int kBits = 6, kZeroShift = 5;
  static constexpr int kBlocks = 8;
  PackedNibbles nibbles[kBlocks];
  PackedSixthBits high_bits[kBlocks];
  std::int8_t sub_scales[kBlocks][2][kPackedRows];  // of inputs 0-15 and 16-31 of the block
  PackedHalf scales[kPackedRows];
};

// Weights of 16 and 32 bits: [k][16 rows], the file's bits.
template <DType dtype, class Element>
struct PackedColumn {
  static constexpr DType kDType = dtype;
  Element rows[kPackedRows];
};
using PackedF32 = PackedColumn<DType::kF32, float>;
using PackedF16 = PackedColumn<DType::kF16, PackedHalf>;
using PackedBF16 = PackedColumn<DType::kBF16, std::uint16_t>;

// How a format is packed (pack.cc). One without a unit of its own is widened to F16 when it is loaded: that
// rounds a weight to 11 bits, which is far below what rounding inputs to int8 costs the others.
template <class Format>
struct PackingOf {
  using Unit = PackedF16;
};
template <class Packed>
struct PackedAs {
  using Unit = Packed;
};
template <>
struct PackingOf<quant::F32> : PackedAs<PackedF32> {};
template <>
struct PackingOf<quant::F16> : PackedAs<PackedF16> {};
template <>
struct PackingOf<quant::BF16> : PackedAs<PackedBF16> {};
template <>
struct PackingOf<quant::Q8_0> : PackedAs<PackedQ8_0> {};
template <>
struct PackingOf<quant::Q4_0> : PackedAs<PackedQ4_0> {};
template <>
struct PackingOf<quant::Q4_1> : PackedAs<PackedQ4_1> {};
template <>
struct PackingOf<quant::Q5_0> : PackedAs<PackedQ5_0> {};
template <>
struct PackingOf<quant::Q5_1> : PackedAs<PackedQ5_1> {};
template <>
struct PackingOf<quant::Q4_K> : PackedAs<PackedQ4_K> {};
template <>
struct PackingOf<quant::Q5_K> : PackedAs<PackedQ5_K> {};
template <>
struct PackingOf<quant::Q6_K> : PackedAs<PackedQ6_K> {};

template <class Format>
using UnitOf = typename PackingOf<Format>::Unit;

// Whether a unit has no blocks: its matmul reads float activations.
template <class Unit>
inline constexpr bool kIsColumn = false;
template <DType dtype, class Element>
inline constexpr bool kIsColumn<PackedColumn<dtype, Element>> = true;

static_assert(sizeof(PackedQ4_0) == 9 * 64);
static_assert(sizeof(PackedQ4_1) == 5 * 64);
static_assert(sizeof(PackedQ5_0) == 11 * 64);
static_assert(sizeof(PackedQ5_1) == 6 * 64);
static_assert(sizeof(PackedQ8_0) == 17 * 64);
static_assert(sizeof(PackedQ4_K) == 37 * 64);
static_assert(sizeof(PackedQ5_K) == 45 * 64);
static_assert(sizeof(PackedQ6_K) == 53 * 64);  // 32 bytes of padding

// Units in one group of a matrix with k inputs.
template <class Unit>
constexpr std::int64_t units_of(std::int64_t k) {
  return (k / 32 + Unit::kBlocks - 1) / Unit::kBlocks;
}

// Bytes of one group of a matrix with k inputs, rounded up to whole cache lines.
template <class Column>
constexpr std::int64_t column_group_bytes(std::int64_t k) {
  return (k * static_cast<std::int64_t>(sizeof(Column)) + 63) / 64 * 64;
}

}  // namespace kvasir::kernels
