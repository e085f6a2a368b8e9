// Packed weights: 16 rows together, one row per lane, in the order kernels stream them.
//
// A group of 16 rows is a sequence of units; a unit holds kBlocks blocks of 32 inputs, chosen so that it
// fills whole cache lines. Inside a block, "group of 4" j is inputs 4 j .. 4 j + 3 of all rows: 64 bytes,
// byte 4 r + i for row r and input 4 j + i, which is what one vpdpbusd consumes. Codes are the file's
// integers, unsigned; scales and minima are the file's bits. Nothing is rounded. Members lie as they come
// from memory fastest, by measurement: in the order of reading where that makes one stream.
//
// kBits is the width of the codes that kernels multiply: 4, 5, 6 or 8. Fewer may be stored. The code that stands for
// zero is 2^kZeroShift, or 0 when kZeroShift is 0. Formats may share a unit; kDType is one of them.
#pragma once

#include <cstdint>

#include "quant/dtype.h"
#include "quant/nibble_tables.h"

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
// Bits 2 (j % 4), 2 (j % 4) + 1 of a byte of plane j / 4 are bits 0 and 1 of the code in group of 4 j.
using PackedLowBits = std::uint8_t[2][kGroupOf4Bytes];
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

// Nibbles that a table of kTable turns into codes of 8 bits.
struct alignas(64) PackedIQ4_NL {
  static constexpr DType kDType = DType::kIQ4_NL;
  static constexpr int kBits = 8, kZeroShift = 7;
  static constexpr int kBlocks = 2;
  static constexpr const std::uint8_t* kTable = quant::kIq4Codes;
  PackedHalf scales[kBlocks][kPackedRows];
  PackedNibbles nibbles[kBlocks];
};

struct alignas(64) PackedIQ4_XS {
  static constexpr DType kDType = DType::kIQ4_XS;
  static constexpr int kBits = 8, kZeroShift = 7;
  static constexpr int kBlocks = 8;
  static constexpr const std::uint8_t* kTable = quant::kIq4Codes;
  PackedNibbles nibbles[kBlocks];
  std::int8_t sub_scales[kBlocks][kPackedRows];
  PackedHalf scales[kPackedRows];
};

// The scale of exponent e is 2^(e - 128), but 0 for e = 0: weights below 2^-124 become zeros.
struct alignas(64) PackedMXFP4 {
  static constexpr DType kDType = DType::kMXFP4;
  static constexpr int kBits = 8, kZeroShift = 7;
  static constexpr int kBlocks = 4;
  static constexpr const std::uint8_t* kTable = quant::kE2m1Codes;
  std::uint8_t exponents[kBlocks][kPackedRows];
  PackedNibbles nibbles[kBlocks];
};

struct alignas(64) PackedQ3_K {
  static constexpr DType kDType = DType::kQ3_K;
  static constexpr int kBits = 4, kZeroShift = 2;
  static constexpr int kBlocks = 8;
  PackedLowBits low_bits[kBlocks];
  PackedFifthBits third_bits[kBlocks];              // bit 2 instead of bit 4
  std::int8_t sub_scales[kBlocks][2][kPackedRows];  // of inputs 0-15 and 16-31 of the block
  PackedHalf scales[kPackedRows];
};

struct alignas(64) PackedQ2_K {
  static constexpr DType kDType = DType::kQ2_K;
  static constexpr int kBits = 4, kZeroShift = 0;
  static constexpr int kBlocks = 8;
  PackedLowBits low_bits[kBlocks];
  std::uint8_t sub_scales[kBlocks][2][kPackedRows];  // of inputs 0-15 and 16-31 of the block
  std::uint8_t sub_mins[kBlocks][2][kPackedRows];
  PackedHalf scales[kPackedRows];
  PackedHalf min_scales[kPackedRows];
};

// value = scale * (code - 1): TQ1_0, TQ2_0, Q1_0, Q2_0. Kernels take the 1 as a minimum of -scale.
struct alignas(64) PackedTwoBits {
  static constexpr DType kDType = DType::kTQ2_0;
  static constexpr int kBits = 4, kZeroShift = 0;
  static constexpr int kBlocks = 2;
  PackedLowBits low_bits[kBlocks];
  PackedHalf scales[kBlocks][kPackedRows];
};

// value = scale * (code - 128): formats of small integers that are looked up in a grid, or have scales that no half
// holds. Kernels have nothing to decode.
struct alignas(64) PackedScaledBytes {
  static constexpr DType kDType = DType::kIQ3_S;
  static constexpr int kBits = 8, kZeroShift = 7;
  static constexpr int kBlocks = 1;
  PackedBytes codes[kBlocks];
  float scales[kBlocks][2][kPackedRows];  // of inputs 0-15 and 16-31 of the block
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
template <>
struct PackingOf<quant::Q3_K> : PackedAs<PackedQ3_K> {};
template <>
struct PackingOf<quant::Q2_K> : PackedAs<PackedQ2_K> {};
template <>
struct PackingOf<quant::IQ4_NL> : PackedAs<PackedIQ4_NL> {};
template <>
struct PackingOf<quant::IQ4_XS> : PackedAs<PackedIQ4_XS> {};
template <>
struct PackingOf<quant::MXFP4> : PackedAs<PackedMXFP4> {};
template <>
struct PackingOf<quant::TQ1_0> : PackedAs<PackedTwoBits> {};
template <>
struct PackingOf<quant::TQ2_0> : PackedAs<PackedTwoBits> {};
template <>
struct PackingOf<quant::Q1_0> : PackedAs<PackedTwoBits> {};
template <>
struct PackingOf<quant::Q2_0> : PackedAs<PackedTwoBits> {};
template <>
struct PackingOf<quant::NVFP4> : PackedAs<PackedScaledBytes> {};
template <>
struct PackingOf<quant::IQ3_S> : PackedAs<PackedScaledBytes> {};
template <>
struct PackingOf<quant::IQ3_XXS> : PackedAs<PackedScaledBytes> {};
template <>
struct PackingOf<quant::IQ2_S> : PackedAs<PackedScaledBytes> {};
template <>
struct PackingOf<quant::IQ2_XS> : PackedAs<PackedScaledBytes> {};
template <>
struct PackingOf<quant::IQ2_XXS> : PackedAs<PackedScaledBytes> {};

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
static_assert(sizeof(PackedIQ4_NL) == 9 * 64);
static_assert(sizeof(PackedIQ4_XS) == 35 * 64);  // 32 bytes of padding
static_assert(sizeof(PackedMXFP4) == 17 * 64);
static_assert(sizeof(PackedQ3_K) == 29 * 64);  // 32 bytes of padding
static_assert(sizeof(PackedQ2_K) == 25 * 64);
static_assert(sizeof(PackedTwoBits) == 5 * 64);
static_assert(sizeof(PackedScaledBytes) == 10 * 64);

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
