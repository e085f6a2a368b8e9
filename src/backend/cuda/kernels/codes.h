// Codes and scales of a block of packed weights (kernels/packed.h), as a lane of a warp takes them for mma_s8.
//
// Lane l has g = l / 4 and j = l % 4. Row g of the instruction's 16 is row 2 g of the group, and row g + 8 is row
// 2 g + 1: so two rows of a group of 4 lie in 8 bytes that one load brings.
#pragma once

#include <cstdint>

#include "backend/cuda/simt/simt.h"
#include "kernels/packed.h"

namespace kvasir::cuda {

// The bytes of a block that a lane decodes.
struct RawCodes {
  std::uint32_t words[6];
};

KVASIR_DEVICE void load_words(const std::uint8_t* from, std::uint32_t* words) {
  const simt::Words2 loaded = simt::load8(from);
  words[0] = loaded.x;
  words[1] = loaded.y;
}

template <class Unit>
KVASIR_DEVICE RawCodes load_codes(const Unit* unit, int block, int g, int j) {
  RawCodes raw = {};
  if constexpr (requires(Unit u) { u.codes; }) {
    load_words(&unit->codes[block][j][8 * g], raw.words);
    load_words(&unit->codes[block][j + 4][8 * g], raw.words + 2);
  } else if constexpr (requires(Unit u) { u.low_bits; }) {
    load_words(&unit->low_bits[block][0][8 * g], raw.words);
    load_words(&unit->low_bits[block][1][8 * g], raw.words + 2);
    if constexpr (requires(Unit u) { u.third_bits; })
      load_words(&unit->third_bits[block][8 * g], raw.words + 4);
  } else {
    load_words(&unit->nibbles[block][j][8 * g], raw.words);
    if constexpr (Unit::kBits == 5) load_words(&unit->high_bits[block][8 * g], raw.words + 2);
    if constexpr (Unit::kBits == 6) {
      load_words(&unit->high_bits[block][0][8 * g], raw.words + 2);
      load_words(&unit->high_bits[block][1][8 * g], raw.words + 4);
    }
  }
  return raw;
}

// Codes 4 i .. 4 i + 3 of a table, signed.
template <class Unit>
constexpr std::uint32_t word_of_table(int i) {
  std::uint32_t word = 0;
  for (int byte = 0; byte < 4; ++byte)
    word |= static_cast<std::uint32_t>(Unit::kTable[4 * i + byte] ^ 0x80) << 8 * byte;
  return word;
}

// The signed codes of four nibbles, one in each byte.
template <class Unit>
KVASIR_DEVICE std::uint32_t look_up(std::uint32_t nibbles) {
  constexpr std::uint32_t kWords[] = {word_of_table<Unit>(0), word_of_table<Unit>(1), word_of_table<Unit>(2),
                                      word_of_table<Unit>(3)};
  std::uint32_t selector = nibbles & 0x07070707u;
  selector = (selector | selector >> 4) & 0x00ff00ffu;
  selector = (selector | selector >> 8) & 0xffffu;
  const std::uint32_t is_upper = (nibbles >> 3 & 0x01010101u) * 0xffu;
  const std::uint32_t lower = simt::select_bytes(kWords[0], kWords[1], selector);
  const std::uint32_t upper = simt::select_bytes(kWords[2], kWords[3], selector);
  return (upper & is_upper) | (lower & ~is_upper);
}

// The codes as a operand of mma_s8: a[0] and a[1] of inputs 4 j .. 4 j + 3, a[2] and a[3] of those 16 further on.
// Codes of 8 bits come out less 128.
template <class Unit>
KVASIR_DEVICE void decode(const RawCodes& raw, int j, std::uint32_t (&a)[4]) {
  constexpr std::uint32_t kNibbles = 0x0f0f0f0fu, kPairs = 0x03030303u, kBits = 0x01010101u;
  KVASIR_UNROLL
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t* words = raw.words + i;
    if constexpr (requires(Unit u) { u.codes; }) {
      a[i] = words[0] ^ 0x80808080u;
      a[i + 2] = words[2] ^ 0x80808080u;
    } else if constexpr (requires(Unit u) { u.low_bits; }) {
      a[i] = words[0] >> 2 * j & kPairs;
      a[i + 2] = words[2] >> 2 * j & kPairs;
      if constexpr (requires(Unit u) { u.third_bits; }) {
        a[i] |= (words[4] >> j & kBits) << 2;
        a[i + 2] |= (words[4] >> (j + 4) & kBits) << 2;
      }
    } else {
      a[i] = words[0] & kNibbles;
      a[i + 2] = words[0] >> 4 & kNibbles;
      if constexpr (requires { Unit::kTable; }) {
        a[i] = look_up<Unit>(a[i]);
        a[i + 2] = look_up<Unit>(a[i + 2]);
      }
      if constexpr (Unit::kBits == 5) {
        a[i] |= (words[2] >> j & kBits) << 4;
        a[i + 2] |= (words[2] >> (j + 4) & kBits) << 4;
      }
      if constexpr (Unit::kBits == 6) {
        a[i] |= (words[2] >> 2 * j & kPairs) << 4;
        a[i + 2] |= (words[4] >> 2 * j & kPairs) << 4;
      }
    }
  }
}

// Whether a block has a scale, and a minimum, for each half or for all inputs.
template <class Unit>
inline constexpr bool kHasHalves = requires(Unit u) {
  u.sub_scales[0][1][0];
}
|| requires(Unit u) {
  u.codes;
  u.scales[0][1][0];
};
template <class Unit>
inline constexpr bool kHasMinimum = requires(Unit u) {
  u.mins;
}
|| requires(Unit u) { u.min_scales; }
|| Unit::kDType == DType::kTQ2_0;
template <class Unit>
inline constexpr int kSums = kHasHalves<Unit> ? 2 : 1;

// Scales of one row in a block, by half.
struct RowScales {
  float scale[2];
  float
      minimum[2];  // to be added: of halves for -1/128 of its activations' offset, else for their scaled sum
};

// The products of scales and sub-scales are exact.
template <class Unit>
KVASIR_DEVICE RowScales row_scales(const Unit* unit, int block, int row) {
  RowScales result = {};
  if constexpr (requires(Unit u) { u.exponents; }) {
    const std::uint32_t exponent = simt::load(&unit->exponents[block][row]);
    result.scale[0] = 0.5f * simt::float_of_bits(exponent << 23);
  } else if constexpr (Unit::kDType == DType::kIQ3_S) {
    result.scale[0] = simt::load(&unit->scales[block][0][row]);
    result.scale[1] = simt::load(&unit->scales[block][1][row]);
  } else if constexpr (kHasHalves<Unit>) {
    const float scale = simt::half_to_float(simt::load(&unit->scales[row]));
    for (int i = 0; i < 2; ++i)
      result.scale[i] = scale * static_cast<float>(simt::load(&unit->sub_scales[block][i][row]));
    if constexpr (kHasMinimum<Unit>) {
      const float minimum = simt::half_to_float(simt::load(&unit->min_scales[row])) * (1.0f / 128);
      for (int i = 0; i < 2; ++i)
        result.minimum[i] = minimum * static_cast<float>(simt::load(&unit->sub_mins[block][i][row]));
    }
  } else if constexpr (requires(Unit u) { u.sub_scales; }) {
    const float scale = simt::half_to_float(simt::load(&unit->scales[row]));
    result.scale[0] = scale * static_cast<float>(simt::load(&unit->sub_scales[block][row]));
    if constexpr (kHasMinimum<Unit>) {
      const float minimum = simt::half_to_float(simt::load(&unit->min_scales[row]));
      result.minimum[0] = -(minimum * static_cast<float>(simt::load(&unit->sub_mins[block][row])));
    }
  } else {
    result.scale[0] = simt::half_to_float(simt::load(&unit->scales[block][row]));
    if constexpr (requires(Unit u) { u.mins; }) {
      result.minimum[0] = simt::half_to_float(simt::load(&unit->mins[block][row]));
    } else if constexpr (kHasMinimum<Unit>) {
      result.minimum[0] = -result.scale[0];
    }
  }
  return result;
}

}  // namespace kvasir::cuda
