// Sixteen float32 lanes on AVX2, FMA and F16C: two ymm registers. avx512/simd.h has the same names and gives
// the same bits.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/force_inline.h"
#include "kernels/x86/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};
// One truth value per lane, as all ones or zeros.
struct Mask16 {
  __m256i lo, hi;
};

// A sum that the compiler may not take apart. GCC would add the products of a whole tile as a tree, whose leaves do not
// fit in registers: half as fast.
KVASIR_FORCE_INLINE __m256i in_order(__m256i sum) {
#if defined(__GNUC__)
  asm("" : "+x"(sum));
#endif
  return sum;
}

// F32x16 that fit in the register file: 16 ymm.
inline constexpr int kVectorRegisters = 8;

KVASIR_FORCE_INLINE F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
KVASIR_FORCE_INLINE F32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
KVASIR_FORCE_INLINE F32x16 broadcast_first(F32x16 a) {
  const __m256 first = _mm256_broadcastss_ps(_mm256_castps256_ps128(a.lo));
  return {first, first};
}

// Lanes [0, n); the others are false. 0 <= n <= 16.
KVASIR_FORCE_INLINE Mask16 first_lanes(int n) {
  const __m256i limit = _mm256_set1_epi32(n);
  return {_mm256_cmpgt_epi32(limit, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
          _mm256_cmpgt_epi32(limit, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15))};
}

// The lanes whose bits are set.
KVASIR_FORCE_INLINE Mask16 lanes_of(std::uint16_t bits) {
  const __m256i all = _mm256_set1_epi32(bits);
  const __m256i lo = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), hi = _mm256_slli_epi32(lo, 8);
  return {_mm256_cmpeq_epi32(_mm256_and_si256(all, lo), lo), _mm256_cmpeq_epi32(_mm256_and_si256(all, hi), hi)};
}

// No pointer needs alignment. A partial load or store touches the first n elements only; other lanes load as
// 0.
KVASIR_FORCE_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
KVASIR_FORCE_INLINE F32x16 load_partial(const float* p, int n) {
  const Mask16 mask = first_lanes(n);
  return {_mm256_maskload_ps(p, mask.lo), _mm256_maskload_ps(p + 8, mask.hi)};
}
KVASIR_FORCE_INLINE void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
KVASIR_FORCE_INLINE void store_partial(float* p, F32x16 a, int n) {
  const Mask16 mask = first_lanes(n);
  _mm256_maskstore_ps(p, mask.lo, a.lo);
  _mm256_maskstore_ps(p + 8, mask.hi, a.hi);
}

// IEEE binary16; stores round to nearest even.
KVASIR_FORCE_INLINE F32x16 load_half(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
KVASIR_FORCE_INLINE F32x16 load_half_partial(const std::uint16_t* p, int n) {
  std::uint16_t whole[16] = {};
  for (int i = 0; i < n; ++i) whole[i] = p[i];
  return load_half(whole);
}
KVASIR_FORCE_INLINE void store_half(std::uint16_t* p, F32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
KVASIR_FORCE_INLINE void store_half_partial(std::uint16_t* p, F32x16 a, int n) {
  std::uint16_t whole[16];
  store_half(whole, a);
  for (int i = 0; i < n; ++i) p[i] = whole[i];
}
KVASIR_FORCE_INLINE F32x16 load_bf16(const std::uint16_t* p) {
  const __m256i lo = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i hi = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))};
}
// Eight floats, each in two neighbouring lanes: p[0] p[0] p[1] p[1] ...
KVASIR_FORCE_INLINE F32x16 load_twice(const float* p) {
  const __m256 eight = _mm256_loadu_ps(p);
  return {_mm256_permutevar8x32_ps(eight, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
          _mm256_permutevar8x32_ps(eight, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
}

KVASIR_FORCE_INLINE F32x16 add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE F32x16 div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE F32x16 sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
// a * b + c and a * b - c, rounded once.
KVASIR_FORCE_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
KVASIR_FORCE_INLINE F32x16 fms(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)};
}
// Even lanes a * b - c, odd lanes a * b + c.
KVASIR_FORCE_INLINE F32x16 fma_alternating(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmaddsub_ps(a.lo, b.lo, c.lo), _mm256_fmaddsub_ps(a.hi, b.hi, c.hi)};
}
// A NaN in either gives b.
KVASIR_FORCE_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE F32x16 abs(F32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
// False where either is NaN.
KVASIR_FORCE_INLINE Mask16 less(F32x16 a, F32x16 b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_castps_si256(_mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
KVASIR_FORCE_INLINE Mask16 equal(F32x16 a, F32x16 b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ)),
          _mm256_castps_si256(_mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ))};
}
// a and not b.
KVASIR_FORCE_INLINE Mask16 and_not(Mask16 a, Mask16 b) {
  return {_mm256_andnot_si256(b.lo, a.lo), _mm256_andnot_si256(b.hi, a.hi)};
}
KVASIR_FORCE_INLINE F32x16 select(Mask16 mask, F32x16 if_true, F32x16 if_false) {
  return {_mm256_blendv_ps(if_false.lo, if_true.lo, _mm256_castsi256_ps(mask.lo)),
          _mm256_blendv_ps(if_false.hi, if_true.hi, _mm256_castsi256_ps(mask.hi))};
}
// a + b where the mask says so, else a, which is not -0.
KVASIR_FORCE_INLINE F32x16 add_where(Mask16 mask, F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, _mm256_and_ps(_mm256_castsi256_ps(mask.lo), b.lo)),
          _mm256_add_ps(a.hi, _mm256_and_ps(_mm256_castsi256_ps(mask.hi), b.hi))};
}

KVASIR_FORCE_INLINE F32x16 to_float(I32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
KVASIR_FORCE_INLINE I32x16 bits_of(F32x16 a) {
  return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
KVASIR_FORCE_INLINE F32x16 float_from_bits(I32x16 a) {
  return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}
template <int kBits>
KVASIR_FORCE_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
}

template <int kBits>
KVASIR_FORCE_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm256_srli_epi32(a.lo, kBits), _mm256_srli_epi32(a.hi, kBits)};
}
KVASIR_FORCE_INLINE I32x16 shift_right(I32x16 a, int bits) {
  const __m128i count = _mm_cvtsi32_si128(bits);
  return {_mm256_srl_epi32(a.lo, count), _mm256_srl_epi32(a.hi, count)};
}
KVASIR_FORCE_INLINE I32x16 bit_and(I32x16 a, int b) {
  const __m256i mask = _mm256_set1_epi32(b);
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
KVASIR_FORCE_INLINE I32x16 bit_or(I32x16 a, I32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE I32x16 add(I32x16 a, int b) {
  const __m256i term = _mm256_set1_epi32(b);
  return {_mm256_add_epi32(a.lo, term), _mm256_add_epi32(a.hi, term)};
}
// To the nearest integer, ties to even.
KVASIR_FORCE_INLINE I32x16 round_to_int(F32x16 a) {
  return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
// A byte to each lane, and the low byte of each lane.
KVASIR_FORCE_INLINE I32x16 load_bytes(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}
KVASIR_FORCE_INLINE I32x16 load_bytes(const std::int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}
KVASIR_FORCE_INLINE void store_bytes(void* p, I32x16 a) {
  const I32x16 low = bit_and(a, 0xff);
  const __m256i i16 = _mm256_permute4x64_epi64(_mm256_packus_epi32(low.lo, low.hi), 0b11'01'10'00);
  _mm_storeu_si128(static_cast<__m128i*>(p),
                   _mm_packus_epi16(_mm256_castsi256_si128(i16), _mm256_extracti128_si256(i16, 1)));
}
// Lane i trades places with lane i ^ kDistance: 1, 2, 4 or 8.
template <int kDistance>
KVASIR_FORCE_INLINE F32x16 swap_lanes(F32x16 a) {
  if constexpr (kDistance == 1)
    return {_mm256_permute_ps(a.lo, 0b10'11'00'01), _mm256_permute_ps(a.hi, 0b10'11'00'01)};
  if constexpr (kDistance == 2)
    return {_mm256_permute_ps(a.lo, 0b01'00'11'10), _mm256_permute_ps(a.hi, 0b01'00'11'10)};
  if constexpr (kDistance == 4)
    return {_mm256_permute2f128_ps(a.lo, a.lo, 1), _mm256_permute2f128_ps(a.hi, a.hi, 1)};
  if constexpr (kDistance == 8) return {a.hi, a.lo};
}

// The tree of both reductions: lane i meets i + 8, then i + 4, i + 2, i + 1.
KVASIR_FORCE_INLINE float reduce_add(F32x16 a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
// sums[i] = reduce_add of the i-th operand, with its bits.
KVASIR_FORCE_INLINE void reduce_add4(F32x16 a, F32x16 b, F32x16 c, F32x16 d, float* sums) {
  const __m256 a8 = _mm256_add_ps(a.lo, a.hi), b8 = _mm256_add_ps(b.lo, b.hi);
  const __m256 c8 = _mm256_add_ps(c.lo, c.hi), d8 = _mm256_add_ps(d.lo, d.hi);
  const __m256 ab = _mm256_add_ps(_mm256_permute2f128_ps(a8, b8, 0x20), _mm256_permute2f128_ps(a8, b8, 0x31));
  const __m256 cd = _mm256_add_ps(_mm256_permute2f128_ps(c8, d8, 0x20), _mm256_permute2f128_ps(c8, d8, 0x31));
  const __m256 two =  // 2 of a, 2 of c, 2 of b, 2 of d
      _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0b01'00'01'00), _mm256_shuffle_ps(ab, cd, 0b11'10'11'10));
  const __m256 one = _mm256_add_ps(two, _mm256_permute_ps(two, 0b10'11'00'01));
  const __m256i first_of_each = _mm256_setr_epi32(0, 4, 2, 6, 0, 0, 0, 0);
  _mm_storeu_ps(sums, _mm256_castps256_ps128(_mm256_permutevar8x32_ps(one, first_of_each)));
}
KVASIR_FORCE_INLINE float reduce_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

#include "kernels/generic/exp-inl.h"

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
