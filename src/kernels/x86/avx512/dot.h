// Integer dots of 16 packed rows on AVX-512 VNNI. avx2/dot.h has the same names for 8 rows and gives the same
// integers.
#pragma once

#include "kernels/activation.h"
#include "kernels/x86/avx512/simd.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {

// Rows a vector covers, and the float and code vectors of that many rows.
inline constexpr int kLanes = 16;
using FloatLanes = F32x16;
using IntLanes = I32x16;
// Unsigned codes of one group of 4: four consecutive inputs per row.
struct CodeLanes {
  __m512i v;
};

KVASIR_FORCE_INLINE IntLanes zero_int_lanes() { return {_mm512_setzero_si512()}; }
// a + sum * 2^kOutlierShift
KVASIR_FORCE_INLINE IntLanes add_outliers(IntLanes a, IntLanes sum) {
  return {_mm512_add_epi32(a.v, _mm512_slli_epi32(sum.v, kOutlierShift))};
}
KVASIR_FORCE_INLINE FloatLanes zero_lanes() { return zero(); }
KVASIR_FORCE_INLINE FloatLanes broadcast_lanes(float x) { return broadcast(x); }
KVASIR_FORCE_INLINE FloatLanes negate(FloatLanes a) {
  return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(INT32_MIN)))};
}
KVASIR_FORCE_INLINE FloatLanes magnitude(FloatLanes a) { return abs(a); }
KVASIR_FORCE_INLINE FloatLanes load_lanes(const float* p) { return load(p); }
KVASIR_FORCE_INLINE FloatLanes load_half_lanes(const std::uint16_t* p) { return load_half(p); }
KVASIR_FORCE_INLINE FloatLanes load_bf16_lanes(const std::uint16_t* p) { return load_bf16(p); }
KVASIR_FORCE_INLINE FloatLanes load_int_lanes(const std::uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
KVASIR_FORCE_INLINE FloatLanes load_int_lanes(const std::int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
// 2^(byte - 127), but 0 for 0.
KVASIR_FORCE_INLINE FloatLanes load_exponent_lanes(const std::uint8_t* p) {
  const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 23))};
}
KVASIR_FORCE_INLINE void store_lanes(float* p, FloatLanes a, int n) { store_partial(p, a, n); }
KVASIR_FORCE_INLINE FloatLanes load_lanes(const float* p, int n) { return load_partial(p, n); }

KVASIR_FORCE_INLINE CodeLanes load_codes(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
// Codes of 8 bits lie as packed.h says: the signed value xor 0x80.
KVASIR_FORCE_INLINE CodeLanes load_byte_codes(const std::uint8_t* p) { return load_codes(p); }

// Byte codes that nibbles stand for.
struct CodeTable {
  __m512i v;
};
KVASIR_FORCE_INLINE CodeTable load_byte_code_table(const std::uint8_t* codes) {
  return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)))};
}
KVASIR_FORCE_INLINE CodeLanes look_up(CodeTable table, CodeLanes nibbles) {
  return {_mm512_shuffle_epi8(table.v, nibbles.v)};
}

// Codes with a zero point are decoded times the power of two that makes it 128, so that every format starts
// its sums at ActivationBlock::offset; load_scales divides the scale by it. All of that is exact.
inline constexpr bool kScalesCodes = true;

// Nibbles times 2^kUp.
template <int kUp>
KVASIR_FORCE_INLINE CodeLanes low_nibbles(CodeLanes a) {
  const __m512i shifted = kUp == 0 ? a.v : _mm512_slli_epi16(a.v, kUp);
  return {_mm512_and_si512(shifted, _mm512_set1_epi8(static_cast<char>(0x0f << kUp)))};
}
template <int kUp>
KVASIR_FORCE_INLINE CodeLanes high_nibbles(CodeLanes a) {
  const __m512i shifted = kUp == 4 ? a.v : _mm512_srli_epi16(a.v, 4 - kUp);
  return {_mm512_and_si512(shifted, _mm512_set1_epi8(static_cast<char>(0x0f << kUp)))};
}
// The byte codes whose high and low nibbles are the low nibbles of `high` and `low`; then those of their high
// nibbles.
KVASIR_FORCE_INLINE CodeLanes join_low_nibbles(CodeLanes high, CodeLanes low) {
  const __m512i mask = _mm512_set1_epi8(0x0f);
  return {_mm512_ternarylogic_epi32(mask, low.v, _mm512_slli_epi16(high.v, 4), 0xca)};
}
KVASIR_FORCE_INLINE CodeLanes join_high_nibbles(CodeLanes high, CodeLanes low) {
  const __m512i mask = _mm512_set1_epi8(0x0f);
  return {_mm512_ternarylogic_epi32(mask, _mm512_srli_epi16(low.v, 4), high.v, 0xca)};
}
// (plane shifted left by kShift, or right by -kShift) & kMask
template <int kShift, int kMask>
KVASIR_FORCE_INLINE CodeLanes and_bits(CodeLanes plane) {
  __m512i bits = plane.v;
  if constexpr (kShift > 0) bits = _mm512_slli_epi16(bits, kShift);
  if constexpr (kShift < 0) bits = _mm512_srli_epi16(bits, -kShift);
  return {_mm512_and_si512(bits, _mm512_set1_epi8(static_cast<char>(kMask)))};
}
// codes | (plane shifted left by kShift, or right by -kShift) & kMask
template <int kShift, int kMask>
KVASIR_FORCE_INLINE CodeLanes or_bits(CodeLanes codes, CodeLanes plane) {
  __m512i bits = plane.v;
  if constexpr (kShift > 0) bits = _mm512_slli_epi16(bits, kShift);
  if constexpr (kShift < 0) bits = _mm512_srli_epi16(bits, -kShift);
  return {_mm512_ternarylogic_epi32(codes.v, bits, _mm512_set1_epi8(static_cast<char>(kMask)), 0xf8)};
}

// Four bytes of an activation row, read as one integer.
typedef std::int32_t __attribute__((may_alias)) ActivationGroupOf4;
// The same four activations for every row.
struct GroupOf4Lanes {
  __m512i v;
};

// In assembly, here and below, because GCC 12 does not fold the broadcast into the instruction and Clang 19
// hoists broadcasts until it runs out of registers.
KVASIR_FORCE_INLINE GroupOf4Lanes broadcast_group_of_4(const std::int8_t* q) {
  GroupOf4Lanes group_of_4;
  asm("vpbroadcastd %1, %0" : "=v"(group_of_4.v) : "m"(*reinterpret_cast<const ActivationGroupOf4*>(q)));
  return group_of_4;
}

// sum + the dot of each row's four codes with four activations.
KVASIR_FORCE_INLINE IntLanes add_group_of_4(IntLanes sum, CodeLanes codes, GroupOf4Lanes group_of_4) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.v) : "v"(codes.v), "v"(group_of_4.v));
  return sum;
}
template <int kBits>
KVASIR_FORCE_INLINE IntLanes add_group_of_4(IntLanes sum, CodeLanes codes, const std::int8_t* q) {
  const auto* group_of_4 = reinterpret_cast<const ActivationGroupOf4*>(q);
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum.v) : "v"(codes.v), "m"(*group_of_4));
  return sum;
}

// As add_quad for codes of load_byte_codes, in sums that began at start_byte_sum.
KVASIR_FORCE_INLINE IntLanes add_byte_group_of_4(IntLanes sum, CodeLanes codes, GroupOf4Lanes group_of_4) {
  return add_group_of_4(sum, codes, group_of_4);
}
KVASIR_FORCE_INLINE IntLanes start_byte_sum(const ActivationBlock& x) {
  return {_mm512_set1_epi32(x.offset)};
}

// Where the sum over a block, or over one half of it, starts. Formats without a zero point start at 0.
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_sum(const ActivationBlock& x) {
  return kZeroShift == 0 ? zero_int_lanes() : IntLanes{_mm512_set1_epi32(x.offset)};
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_high_sum(const ActivationBlock& x) {
  return kZeroShift == 0 ? zero_int_lanes() : IntLanes{_mm512_set1_epi32(x.offset_high)};
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_low_sum(const ActivationBlock& x) {
  if constexpr (kZeroShift == 0) return zero_int_lanes();
  return {_mm512_sub_epi32(_mm512_set1_epi32(x.offset), _mm512_set1_epi32(x.offset_high))};
}

// dots[t] += sum over a block of code * q of token t; the tokens' blocks are neighbours.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* dots) {
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) dots[t] = add_group_of_4<kBits>(dots[t], codes[j], x[t].q + 4 * j);
  }
}

// As dot_blocks, over the first and the last 16 inputs apart.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_half_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* low,
                                         IntLanes* high) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      low[t] = add_group_of_4<kBits>(low[t], codes[j], x[t].q + 4 * j);
      high[t] = add_group_of_4<kBits>(high[t], codes[j + 4], x[t].q + 16 + 4 * j);
    }
  }
}

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
