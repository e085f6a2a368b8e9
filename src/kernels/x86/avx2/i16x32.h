// Thirty-two 16-bit integers, two per lane of an I32x16, on AVX2: two ymm registers. avx512/i16x32.h has the
// same names and gives the same integers.
#pragma once

#include "kernels/x86/avx2/simd.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

// Integers 2 i and 2 i + 1 are those of lane i.
struct I16x32 {
  __m256i lo, hi;
};

KVASIR_FORCE_INLINE I16x32 load_i16x32(const void* p) {
  const auto* half = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(half), _mm256_loadu_si256(half + 1)};
}
KVASIR_FORCE_INLINE void store_i16x32(void* p, I16x32 a) {
  auto* half = static_cast<__m256i*>(p);
  _mm256_storeu_si256(half, a.lo);
  _mm256_storeu_si256(half + 1, a.hi);
}
// The four bytes at p to every lane.
KVASIR_FORCE_INLINE I16x32 broadcast_pair(const void* p) {
  const __m256i pair = _mm256_castps_si256(_mm256_broadcast_ss(static_cast<const float*>(p)));
  return {pair, pair};
}

template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_left(I16x32 a) {
  if constexpr (kBits == 0) return a;
  return {_mm256_slli_epi16(a.lo, kBits), _mm256_slli_epi16(a.hi, kBits)};
}
template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_right(I16x32 a) {
  return {_mm256_srli_epi16(a.lo, kBits), _mm256_srli_epi16(a.hi, kBits)};
}
// Copies of the sign come in from the left.
template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_right_signed(I16x32 a) {
  return {_mm256_srai_epi16(a.lo, kBits), _mm256_srai_epi16(a.hi, kBits)};
}
KVASIR_FORCE_INLINE I16x32 bit_and(I16x32 a, int b) {
  const __m256i mask = _mm256_set1_epi16(static_cast<short>(b));
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
KVASIR_FORCE_INLINE I16x32 bit_or(I16x32 a, I16x32 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE I16x32 bit_or(I16x32 a, int b) {
  const __m256i bits = _mm256_set1_epi16(static_cast<short>(b));
  return {_mm256_or_si256(a.lo, bits), _mm256_or_si256(a.hi, bits)};
}
// The bits of a where the mask has them, else those of b.
KVASIR_FORCE_INLINE I16x32 select_bits(int mask, I16x32 a, I16x32 b) {
  return bit_or(bit_and(a, mask), bit_and(b, ~mask));
}
// The product of 16-bit integers whose high byte is 0 with the low byte of each integer of `bytes`. Both are
// unsigned, at most 127 and 255.
KVASIR_FORCE_INLINE I16x32 multiply_low_bytes(I16x32 a, I16x32 bytes) {
  return {_mm256_maddubs_epi16(bytes.lo, a.lo), _mm256_maddubs_epi16(bytes.hi, a.hi)};
}

// sum + the two products of each lane, in 32 bits that wrap around.
KVASIR_FORCE_INLINE I32x16 add_products(I32x16 sum, I16x32 a, I16x32 b) {
  return {in_order(_mm256_add_epi32(sum.lo, _mm256_madd_epi16(a.lo, b.lo))),
          in_order(_mm256_add_epi32(sum.hi, _mm256_madd_epi16(a.hi, b.hi)))};
}
KVASIR_FORCE_INLINE I32x16 zero_int() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }

// The first and the second 16-bit integers as numbers, and the other way round.
KVASIR_FORCE_INLINE I32x16 even_i16(I16x32 a) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(a.lo, 16), 16),
          _mm256_srai_epi32(_mm256_slli_epi32(a.hi, 16), 16)};
}
KVASIR_FORCE_INLINE I32x16 odd_i16(I16x32 a) {
  return {_mm256_srai_epi32(a.lo, 16), _mm256_srai_epi32(a.hi, 16)};
}
KVASIR_FORCE_INLINE I16x32 join_i16(I32x16 even, I32x16 odd) {
  const I32x16 low = bit_and(even, 0xffff), high = shift_left<16>(odd);
  return {_mm256_or_si256(low.lo, high.lo), _mm256_or_si256(low.hi, high.hi)};
}
// The lanes side by side, as numbers of 16 bits.
KVASIR_FORCE_INLINE void store_as_i16(std::int16_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0b11'01'10'00));
}

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
