// Integer dots of 8 packed rows on AVX2. avx512/dot.h has the same names for 16 rows and gives the same
// integers.
#pragma once

#include "kernels/activation.h"
#include "kernels/x86/avx2/simd.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

// Rows a vector covers, and the float and code vectors of that many rows.
inline constexpr int kLanes = 8;
struct FloatLanes {
  __m256 v;
};
struct IntLanes {
  __m256i v;
};
// Codes of one group of 4: four consecutive inputs per row. Unsigned, except those of load_byte_codes.
struct CodeLanes {
  __m256i v;
};

KVASIR_FORCE_INLINE IntLanes zero_int_lanes() { return {_mm256_setzero_si256()}; }
// a + sum * 2^kOutlierShift
KVASIR_FORCE_INLINE IntLanes add_outliers(IntLanes a, IntLanes sum) {
  return {_mm256_add_epi32(a.v, _mm256_slli_epi32(sum.v, kOutlierShift))};
}
KVASIR_FORCE_INLINE FloatLanes zero_lanes() { return {_mm256_setzero_ps()}; }
KVASIR_FORCE_INLINE FloatLanes broadcast_lanes(float x) { return {_mm256_set1_ps(x)}; }
KVASIR_FORCE_INLINE FloatLanes negate(FloatLanes a) { return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))}; }
KVASIR_FORCE_INLINE FloatLanes magnitude(FloatLanes a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)};
}
KVASIR_FORCE_INLINE FloatLanes add(FloatLanes a, FloatLanes b) { return {_mm256_add_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE FloatLanes mul(FloatLanes a, FloatLanes b) { return {_mm256_mul_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE FloatLanes fma(FloatLanes a, FloatLanes b, FloatLanes c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
KVASIR_FORCE_INLINE FloatLanes to_float(IntLanes a) { return {_mm256_cvtepi32_ps(a.v)}; }
KVASIR_FORCE_INLINE FloatLanes load_lanes(const float* p) { return {_mm256_loadu_ps(p)}; }
KVASIR_FORCE_INLINE FloatLanes load_half_lanes(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
KVASIR_FORCE_INLINE FloatLanes load_bf16_lanes(const std::uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
KVASIR_FORCE_INLINE FloatLanes load_int_lanes(const std::uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
KVASIR_FORCE_INLINE FloatLanes load_int_lanes(const std::int8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
// 2^(byte - 127), but 0 for 0.
KVASIR_FORCE_INLINE FloatLanes load_exponent_lanes(const std::uint8_t* p) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 23))};
}
// The first n lanes, 0 <= n <= 8; others load as 0.
KVASIR_FORCE_INLINE __m256i lane_mask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
KVASIR_FORCE_INLINE FloatLanes load_lanes(const float* p, int n) {
  return {_mm256_maskload_ps(p, lane_mask(n))};
}
KVASIR_FORCE_INLINE void store_lanes(float* p, FloatLanes a, int n) {
  _mm256_maskstore_ps(p, lane_mask(n), a.v);
}

KVASIR_FORCE_INLINE CodeLanes load_codes(const std::uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
// Codes of 8 bits become signed again: vpmaddubsw would saturate on 255 * 127 * 2.
KVASIR_FORCE_INLINE CodeLanes load_byte_codes(const std::uint8_t* p) {
  return {_mm256_xor_si256(load_codes(p).v, _mm256_set1_epi8(INT8_MIN))};
}

// Byte codes that nibbles stand for, signed as load_byte_codes has them.
struct CodeTable {
  __m256i v;
};
KVASIR_FORCE_INLINE CodeTable load_byte_code_table(const std::uint8_t* codes) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  return {_mm256_xor_si256(_mm256_broadcastsi128_si256(table), _mm256_set1_epi8(INT8_MIN))};
}
KVASIR_FORCE_INLINE CodeLanes look_up(CodeTable table, CodeLanes nibbles) {
  return {_mm256_shuffle_epi8(table.v, nibbles.v)};
}

// Codes keep their width: add_groups_of_4 sums as many as fit.
inline constexpr bool kScalesCodes = false;

template <int kUp>
KVASIR_FORCE_INLINE CodeLanes low_nibbles(CodeLanes a) {
  static_assert(kUp == 0);
  return {_mm256_and_si256(a.v, _mm256_set1_epi8(0x0f))};
}
template <int kUp>
KVASIR_FORCE_INLINE CodeLanes high_nibbles(CodeLanes a) {
  return {_mm256_and_si256(_mm256_srli_epi16(a.v, 4), _mm256_set1_epi8(0x0f))};
}
// The byte codes, as load_byte_codes has them, whose high and low nibbles are the low nibbles of `high` and
// `low`; then those of their high nibbles.
KVASIR_FORCE_INLINE CodeLanes join_low_nibbles(CodeLanes high, CodeLanes low) {
  const __m256i up = _mm256_and_si256(_mm256_slli_epi16(high.v, 4),
                                      _mm256_set1_epi8(static_cast<char>(0xf0)));
  return {_mm256_xor_si256(_mm256_or_si256(up, low_nibbles<0>(low).v), _mm256_set1_epi8(INT8_MIN))};
}
KVASIR_FORCE_INLINE CodeLanes join_high_nibbles(CodeLanes high, CodeLanes low) {
  const __m256i up = _mm256_and_si256(high.v, _mm256_set1_epi8(static_cast<char>(0xf0)));
  return {_mm256_xor_si256(_mm256_or_si256(up, high_nibbles<0>(low).v), _mm256_set1_epi8(INT8_MIN))};
}
// (plane shifted left by kShift, or right by -kShift) & kMask
template <int kShift, int kMask>
KVASIR_FORCE_INLINE CodeLanes and_bits(CodeLanes plane) {
  __m256i bits = plane.v;
  if constexpr (kShift > 0) bits = _mm256_slli_epi16(bits, kShift);
  if constexpr (kShift < 0) bits = _mm256_srli_epi16(bits, -kShift);
  return {_mm256_and_si256(bits, _mm256_set1_epi8(kMask))};
}
// codes | (plane shifted left by kShift, or right by -kShift) & kMask
template <int kShift, int kMask>
KVASIR_FORCE_INLINE CodeLanes or_bits(CodeLanes codes, CodeLanes plane) {
  __m256i bits = plane.v;
  if constexpr (kShift > 0) bits = _mm256_slli_epi16(bits, kShift);
  if constexpr (kShift < 0) bits = _mm256_srli_epi16(bits, -kShift);
  return {_mm256_or_si256(codes.v, _mm256_and_si256(bits, _mm256_set1_epi8(kMask)))};
}

// Four bytes of an activation row, read as one integer.
typedef std::int32_t __attribute__((may_alias)) ActivationGroupOf4;

// The same four activations for every row.
struct GroupOf4Lanes {
  __m256i v;
};

KVASIR_FORCE_INLINE GroupOf4Lanes broadcast_group_of_4(const std::int8_t* q) {
  return {_mm256_set1_epi32(*reinterpret_cast<const ActivationGroupOf4*>(q))};
}

// |code| * (group of 4 with the code's sign), in pairs: at most 128 * 127 * 2 = 32512, because q is never
// -128.
KVASIR_FORCE_INLINE __m256i signed_products(CodeLanes codes, GroupOf4Lanes group_of_4) {
  return _mm256_maddubs_epi16(_mm256_abs_epi8(codes.v), _mm256_sign_epi8(group_of_4.v, codes.v));
}

// sum + the dot of each row's four codes of load_byte_codes, which are signed, so that sums begin at 0.
KVASIR_FORCE_INLINE IntLanes add_byte_group_of_4(IntLanes sum, CodeLanes codes, GroupOf4Lanes group_of_4) {
  const __m256i groups_of_4 = _mm256_madd_epi16(signed_products(codes, group_of_4), _mm256_set1_epi16(1));
  return {in_order(_mm256_add_epi32(sum.v, groups_of_4))};
}
KVASIR_FORCE_INLINE IntLanes start_byte_sum(const ActivationBlock&) { return zero_int_lanes(); }

// How many pairs of products of groups of 4 of b-bit codes can be added in 16 bits: they stay below 2^15 (15
// * 127 * 2 * 8, 31 * 127 * 2 * 4, 63 * 127 * 2 * 2).
constexpr int exact_groups_of_4(int num_bits) {
  return num_bits == 4 ? 8 : num_bits == 5 ? 4 : num_bits == 6 ? 2 : 1;
}

// sum + the dot of kNumGroupsOf4 groups of 4, without saturation.
template <int kBits, int kNumGroupsOf4>
KVASIR_FORCE_INLINE __m256i add_groups_of_4(__m256i sum, const CodeLanes* codes, const std::int8_t* q) {
  const __m256i ones = _mm256_set1_epi16(1);
  constexpr int kStep = exact_groups_of_4(kBits) < kNumGroupsOf4 ? exact_groups_of_4(kBits) : kNumGroupsOf4;
#pragma GCC unroll 8
  for (int j = 0; j < kNumGroupsOf4; j += kStep) {
    __m256i pairs = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = j; i < j + kStep; ++i) {
      const GroupOf4Lanes group_of_4 = broadcast_group_of_4(q + 4 * i);
      const __m256i products = kBits == 8 ? signed_products(codes[i], group_of_4)
                                          : _mm256_maddubs_epi16(codes[i].v, group_of_4.v);
      pairs = i == j ? products : _mm256_add_epi16(pairs, products);
    }
    sum = in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones)));
  }
  return sum;
}

// sum + the dot of each row's four codes with four activations.
template <int kBits>
KVASIR_FORCE_INLINE IntLanes add_group_of_4(IntLanes sum, const CodeLanes& codes, const std::int8_t* q) {
  return {add_groups_of_4<kBits, 1>(sum.v, &codes, q)};
}

// zero * -sum(activations), where zero = 2^kZeroShift; 0 when kZeroShift is 0 or the codes are signed: where
// an accumulator over a block, or over one half of it, starts so that it ends as sum((code - zero) *
// activation).
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_sum(std::int32_t offset) {
  if constexpr (kZeroShift == 0 || kBits == 8) return zero_int_lanes();
  return {_mm256_srai_epi32(_mm256_set1_epi32(offset), 7 - kZeroShift)};
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_sum(const ActivationBlock& x) {
  return start_sum<kBits, kZeroShift>(x.offset);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_low_sum(const ActivationBlock& x) {
  return start_sum<kBits, kZeroShift>(x.offset - x.offset_high);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_high_sum(const ActivationBlock& x) {
  return start_sum<kBits, kZeroShift>(x.offset_high);
}

// dots[t] += sum over a block of code * q of token t; the tokens' blocks are neighbours.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* dots) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) dots[t] = {add_groups_of_4<kBits, 8>(dots[t].v, codes, x[t].q)};
}

// As dot_blocks, over the first and the last 16 inputs apart.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_half_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* low,
                                         IntLanes* high) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    low[t] = {add_groups_of_4<kBits, 4>(low[t].v, codes, x[t].q)};
    high[t] = {add_groups_of_4<kBits, 4>(high[t].v, codes + 4, x[t].q + 16)};
  }
}

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
