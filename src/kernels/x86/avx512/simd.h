// Sixteen float32 lanes on AVX-512: one zmm register. avx2/simd.h has the same names and gives the same bits.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/force_inline.h"
#include "kernels/x86/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};
// One truth value per lane.
struct Mask16 {
  __mmask16 v;
};

// F32x16 that fit in the register file: 32 zmm.
inline constexpr int kVectorRegisters = 32;

KVASIR_FORCE_INLINE F32x16 zero() { return {_mm512_setzero_ps()}; }
KVASIR_FORCE_INLINE F32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
KVASIR_FORCE_INLINE F32x16 broadcast_first(F32x16 a) {
  return {_mm512_broadcastss_ps(_mm512_castps512_ps128(a.v))};
}

// Lanes [0, n); the others are false. 0 <= n <= 16.
KVASIR_FORCE_INLINE Mask16 first_lanes(int n) { return {static_cast<__mmask16>((1u << n) - 1u)}; }

// The lanes whose bits are set.
KVASIR_FORCE_INLINE Mask16 lanes_of(std::uint16_t bits) { return {static_cast<__mmask16>(bits)}; }

// No pointer needs alignment. A partial load or store touches the first n elements only; other lanes load as
// 0.
KVASIR_FORCE_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
KVASIR_FORCE_INLINE F32x16 load_partial(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first_lanes(n).v, p)};
}
KVASIR_FORCE_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
KVASIR_FORCE_INLINE void store_partial(float* p, F32x16 a, int n) {
  _mm512_mask_storeu_ps(p, first_lanes(n).v, a.v);
}

// IEEE binary16; stores round to nearest even.
KVASIR_FORCE_INLINE F32x16 load_half(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
KVASIR_FORCE_INLINE F32x16 load_half_partial(const std::uint16_t* p, int n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n).v, p))};
}
KVASIR_FORCE_INLINE void store_half(std::uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
KVASIR_FORCE_INLINE void store_half_partial(std::uint16_t* p, F32x16 a, int n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n).v, _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
KVASIR_FORCE_INLINE F32x16 load_bf16(const std::uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
// Eight floats, each in two neighbouring lanes: p[0] p[0] p[1] p[1] ...
KVASIR_FORCE_INLINE F32x16 load_twice(const float* p) {
  const __m512i index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {_mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)))};
}

KVASIR_FORCE_INLINE F32x16 add(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE F32x16 sub(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE F32x16 mul(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE F32x16 div(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE F32x16 sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
// a * b + c and a * b - c, rounded once.
KVASIR_FORCE_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
KVASIR_FORCE_INLINE F32x16 fms(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }
// Even lanes a * b - c, odd lanes a * b + c.
KVASIR_FORCE_INLINE F32x16 fma_alternating(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmaddsub_ps(a.v, b.v, c.v)};
}
// A NaN in either gives b.
KVASIR_FORCE_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
KVASIR_FORCE_INLINE F32x16 abs(F32x16 a) { return {_mm512_abs_ps(a.v)}; }

// False where either is NaN.
KVASIR_FORCE_INLINE Mask16 less(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
KVASIR_FORCE_INLINE Mask16 equal(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
// a and not b.
KVASIR_FORCE_INLINE Mask16 and_not(Mask16 a, Mask16 b) { return {static_cast<__mmask16>(a.v & ~b.v)}; }
KVASIR_FORCE_INLINE F32x16 select(Mask16 mask, F32x16 if_true, F32x16 if_false) {
  return {_mm512_mask_blend_ps(mask.v, if_false.v, if_true.v)};
}
// a + b where the mask says so, else a, which is not -0.
KVASIR_FORCE_INLINE F32x16 add_where(Mask16 mask, F32x16 a, F32x16 b) {
  return {_mm512_mask_add_ps(a.v, mask.v, a.v, b.v)};
}

KVASIR_FORCE_INLINE F32x16 to_float(I32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
KVASIR_FORCE_INLINE I32x16 bits_of(F32x16 a) { return {_mm512_castps_si512(a.v)}; }
KVASIR_FORCE_INLINE F32x16 float_from_bits(I32x16 a) { return {_mm512_castsi512_ps(a.v)}; }
template <int kBits>
KVASIR_FORCE_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}

template <int kBits>
KVASIR_FORCE_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
KVASIR_FORCE_INLINE I32x16 shift_right(I32x16 a, int bits) {
  return {_mm512_srl_epi32(a.v, _mm_cvtsi32_si128(bits))};
}
KVASIR_FORCE_INLINE I32x16 bit_and(I32x16 a, int b) { return {_mm512_and_si512(a.v, _mm512_set1_epi32(b))}; }
KVASIR_FORCE_INLINE I32x16 bit_or(I32x16 a, I32x16 b) { return {_mm512_or_si512(a.v, b.v)}; }
KVASIR_FORCE_INLINE I32x16 add(I32x16 a, int b) { return {_mm512_add_epi32(a.v, _mm512_set1_epi32(b))}; }
// To the nearest integer, ties to even.
KVASIR_FORCE_INLINE I32x16 round_to_int(F32x16 a) { return {_mm512_cvtps_epi32(a.v)}; }
// A byte to each lane, and the low byte of each lane.
KVASIR_FORCE_INLINE I32x16 load_bytes(const std::uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
KVASIR_FORCE_INLINE I32x16 load_bytes(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
KVASIR_FORCE_INLINE void store_bytes(void* p, I32x16 a) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
// Lane i trades places with lane i ^ kDistance: 1, 2, 4 or 8.
template <int kDistance>
KVASIR_FORCE_INLINE F32x16 swap_lanes(F32x16 a) {
  if constexpr (kDistance == 1) return {_mm512_permute_ps(a.v, 0b10'11'00'01)};
  if constexpr (kDistance == 2) return {_mm512_permute_ps(a.v, 0b01'00'11'10)};
  if constexpr (kDistance == 4) return {_mm512_shuffle_f32x4(a.v, a.v, 0b10'11'00'01)};
  if constexpr (kDistance == 8) return {_mm512_shuffle_f32x4(a.v, a.v, 0b01'00'11'10)};
}

// The tree of both reductions: lane i meets i + 8, then i + 4, i + 2, i + 1.
KVASIR_FORCE_INLINE float reduce_add(F32x16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
// sums[i] = reduce_add of the i-th operand, with its bits.
KVASIR_FORCE_INLINE void reduce_add4(F32x16 a, F32x16 b, F32x16 c, F32x16 d, float* sums) {
  const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0b01'00'01'00),  // 8 of a, 8 of b
                                  _mm512_shuffle_f32x4(a.v, b.v, 0b11'10'11'10));
  const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c.v, d.v, 0b01'00'01'00),
                                  _mm512_shuffle_f32x4(c.v, d.v, 0b11'10'11'10));
  const __m512 four = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0b10'00'10'00),  // 4 of each
                                    _mm512_shuffle_f32x4(ab, cd, 0b11'01'11'01));
  const __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0b01'00'11'10));
  const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0b10'11'00'01));
  const __m512i first_of_each = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_permutexvar_ps(first_of_each, one)));
}
KVASIR_FORCE_INLINE float reduce_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

#include "kernels/generic/exp-inl.h"

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
