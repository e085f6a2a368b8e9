// Thirty-two 16-bit integers, two per lane of an I32x16, on AVX-512 VNNI: one zmm register. avx2/i16x32.h has
// the same names and gives the same integers.
#pragma once

#include "kernels/x86/avx512/simd.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {

// Integers 2 i and 2 i + 1 are those of lane i.
struct I16x32 {
  __m512i v;
};

KVASIR_FORCE_INLINE I16x32 load_i16x32(const void* p) { return {_mm512_loadu_si512(p)}; }
KVASIR_FORCE_INLINE void store_i16x32(void* p, I16x32 a) { _mm512_storeu_si512(p, a.v); }
// The four bytes at p to every lane. In assembly because GCC 12 takes a detour through a general register.
KVASIR_FORCE_INLINE I16x32 broadcast_pair(const void* p) {
  typedef std::int32_t __attribute__((may_alias)) Pair;
  I16x32 pair;
  asm("vpbroadcastd %1, %0" : "=v"(pair.v) : "m"(*static_cast<const Pair*>(p)));
  return pair;
}

template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_left(I16x32 a) {
  if constexpr (kBits == 0) return a;
  return {_mm512_slli_epi16(a.v, kBits)};
}
template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_right(I16x32 a) {
  return {_mm512_srli_epi16(a.v, kBits)};
}
// Copies of the sign come in from the left.
template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_right_signed(I16x32 a) {
  return {_mm512_srai_epi16(a.v, kBits)};
}
KVASIR_FORCE_INLINE I16x32 bit_and(I16x32 a, int b) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi16(static_cast<short>(b)))};
}
KVASIR_FORCE_INLINE I16x32 bit_or(I16x32 a, I16x32 b) { return {_mm512_or_si512(a.v, b.v)}; }
KVASIR_FORCE_INLINE I16x32 bit_or(I16x32 a, int b) {
  return {_mm512_or_si512(a.v, _mm512_set1_epi16(static_cast<short>(b)))};
}
// The bits of a where the mask has them, else those of b.
KVASIR_FORCE_INLINE I16x32 select_bits(int mask, I16x32 a, I16x32 b) {
  return {_mm512_ternarylogic_epi32(_mm512_set1_epi16(static_cast<short>(mask)), a.v, b.v, 0b11'00'10'10)};
}
// The product of 16-bit integers whose high byte is 0 with the low byte of each integer of `bytes`. Both are
// unsigned, at most 127 and 255.
KVASIR_FORCE_INLINE I16x32 multiply_low_bytes(I16x32 a, I16x32 bytes) {
  return {_mm512_maddubs_epi16(bytes.v, a.v)};
}

// sum + the two products of each lane, in 32 bits that wrap around. In assembly because GCC 12 copies the
// sums.
KVASIR_FORCE_INLINE I32x16 add_products(I32x16 sum, I16x32 a, I16x32 b) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
  return sum;
}
KVASIR_FORCE_INLINE I32x16 zero_int() { return {_mm512_setzero_si512()}; }

// The first and the second 16-bit integers as numbers, and the other way round.
KVASIR_FORCE_INLINE I32x16 even_i16(I16x32 a) { return {_mm512_srai_epi32(_mm512_slli_epi32(a.v, 16), 16)}; }
KVASIR_FORCE_INLINE I32x16 odd_i16(I16x32 a) { return {_mm512_srai_epi32(a.v, 16)}; }
KVASIR_FORCE_INLINE I16x32 join_i16(I32x16 even, I32x16 odd) {
  return {_mm512_or_si512(_mm512_and_si512(even.v, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(odd.v, 16))};
}
// The lanes side by side, as numbers of 16 bits.
KVASIR_FORCE_INLINE void store_as_i16(std::int16_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtsepi32_epi16(a.v));
}

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
