// Thirty-two 16-bit integers, two per lane of an I32x16, on AVX2: two ymm registers. avx512/words.h has the
// same names and gives the same integers.
#pragma once

#include "kernels/x86/avx2/simd.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

// Words 2 i and 2 i + 1 are those of lane i.
struct Words {
  __m256i lo, hi;
};

KVASIR_FORCE_INLINE Words load_words(const void* p) {
  const auto* half = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(half), _mm256_loadu_si256(half + 1)};
}
KVASIR_FORCE_INLINE void store_words(void* p, Words a) {
  auto* half = static_cast<__m256i*>(p);
  _mm256_storeu_si256(half, a.lo);
  _mm256_storeu_si256(half + 1, a.hi);
}
// The four bytes at p to every lane.
KVASIR_FORCE_INLINE Words broadcast_pair(const void* p) {
  const __m256i pair = _mm256_castps_si256(_mm256_broadcast_ss(static_cast<const float*>(p)));
  return {pair, pair};
}

template <int kBits>
KVASIR_FORCE_INLINE Words shift_left(Words a) {
  if constexpr (kBits == 0) return a;
  return {_mm256_slli_epi16(a.lo, kBits), _mm256_slli_epi16(a.hi, kBits)};
}
template <int kBits>
KVASIR_FORCE_INLINE Words shift_right(Words a) {
  return {_mm256_srli_epi16(a.lo, kBits), _mm256_srli_epi16(a.hi, kBits)};
}
// Copies of the sign come in from the left.
template <int kBits>
KVASIR_FORCE_INLINE Words shift_right_signed(Words a) {
  return {_mm256_srai_epi16(a.lo, kBits), _mm256_srai_epi16(a.hi, kBits)};
}
KVASIR_FORCE_INLINE Words bit_and(Words a, int b) {
  const __m256i mask = _mm256_set1_epi16(static_cast<short>(b));
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
KVASIR_FORCE_INLINE Words bit_or(Words a, Words b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
KVASIR_FORCE_INLINE Words bit_or(Words a, int b) {
  const __m256i bits = _mm256_set1_epi16(static_cast<short>(b));
  return {_mm256_or_si256(a.lo, bits), _mm256_or_si256(a.hi, bits)};
}
// The bits of a where the mask has them, else those of b.
KVASIR_FORCE_INLINE Words select_bits(int mask, Words a, Words b) {
  return bit_or(bit_and(a, mask), bit_and(b, ~mask));
}
// Of words whose high byte is 0: their product with the low byte of each word of `bytes`, both unsigned, at
// most 127 and 255.
KVASIR_FORCE_INLINE Words multiply_low_bytes(Words a, Words bytes) {
  return {_mm256_maddubs_epi16(bytes.lo, a.lo), _mm256_maddubs_epi16(bytes.hi, a.hi)};
}

// sum + the two products of each lane, in 32 bits that wrap around.
KVASIR_FORCE_INLINE I32x16 add_products(I32x16 sum, Words a, Words b) {
  return {_mm256_add_epi32(sum.lo, _mm256_madd_epi16(a.lo, b.lo)),
          _mm256_add_epi32(sum.hi, _mm256_madd_epi16(a.hi, b.hi))};
}
KVASIR_FORCE_INLINE I32x16 zero_int() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }

// The first and the second words as numbers, and the other way round.
KVASIR_FORCE_INLINE I32x16 even_words(Words a) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(a.lo, 16), 16),
          _mm256_srai_epi32(_mm256_slli_epi32(a.hi, 16), 16)};
}
KVASIR_FORCE_INLINE I32x16 odd_words(Words a) {
  return {_mm256_srai_epi32(a.lo, 16), _mm256_srai_epi32(a.hi, 16)};
}
KVASIR_FORCE_INLINE Words join_words(I32x16 even, I32x16 odd) {
  const I32x16 low = bit_and(even, 0xffff), high = shift_left<16>(odd);
  return {_mm256_or_si256(low.lo, high.lo), _mm256_or_si256(low.hi, high.hi)};
}
// The lanes side by side, as numbers of 16 bits.
KVASIR_FORCE_INLINE void store_as_words(std::int16_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0b11'01'10'00));
}

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
