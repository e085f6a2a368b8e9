// Thirty-two 16-bit integers, two per lane of an I32x16, on NEON: four q registers. x86/avx2/i16x32.h has the
// same names and gives the same integers.
#pragma once

#include "kernels/arm/neon/simd.h"

namespace kvasir::kernels::neon {

// Integers 2 i and 2 i + 1 are those of lane i.
struct I16x32 {
  int16x8_t a, b, c, d;
};

KVASIR_FORCE_INLINE I16x32 load_i16x32(const void* p) {
  const auto* bytes = static_cast<const std::int8_t*>(p);
  const auto eighth = [&](int at) { return vreinterpretq_s16_s8(vld1q_s8(bytes + at)); };
  return {eighth(0), eighth(16), eighth(32), eighth(48)};
}
KVASIR_FORCE_INLINE void store_i16x32(void* p, I16x32 x) {
  auto* bytes = static_cast<std::int8_t*>(p);
  vst1q_s8(bytes, vreinterpretq_s8_s16(x.a));
  vst1q_s8(bytes + 16, vreinterpretq_s8_s16(x.b));
  vst1q_s8(bytes + 32, vreinterpretq_s8_s16(x.c));
  vst1q_s8(bytes + 48, vreinterpretq_s8_s16(x.d));
}
// The four bytes at p to every lane.
KVASIR_FORCE_INLINE I16x32 broadcast_pair(const void* p) {
  std::int32_t both;
  __builtin_memcpy(&both, p, sizeof(both));
  const int16x8_t pair = vreinterpretq_s16_s32(vdupq_n_s32(both));
  return {pair, pair, pair, pair};
}

template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_left(I16x32 x) {
  return {vshlq_n_s16(x.a, kBits), vshlq_n_s16(x.b, kBits), vshlq_n_s16(x.c, kBits), vshlq_n_s16(x.d, kBits)};
}
template <int kBits>
KVASIR_FORCE_INLINE int16x8_t shift_right8(int16x8_t x) {
  return vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_s16(x), kBits));
}
template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_right(I16x32 x) {
  if constexpr (kBits == 0) {
    return x;
  } else {
    return {shift_right8<kBits>(x.a), shift_right8<kBits>(x.b), shift_right8<kBits>(x.c),
            shift_right8<kBits>(x.d)};
  }
}
// Copies of the sign come in from the left.
template <int kBits>
KVASIR_FORCE_INLINE I16x32 shift_right_signed(I16x32 x) {
  return {vshrq_n_s16(x.a, kBits), vshrq_n_s16(x.b, kBits), vshrq_n_s16(x.c, kBits), vshrq_n_s16(x.d, kBits)};
}
KVASIR_FORCE_INLINE I16x32 bit_and(I16x32 x, int y) {
  const int16x8_t mask = vdupq_n_s16(static_cast<std::int16_t>(y));
  return {vandq_s16(x.a, mask), vandq_s16(x.b, mask), vandq_s16(x.c, mask), vandq_s16(x.d, mask)};
}
KVASIR_FORCE_INLINE I16x32 bit_or(I16x32 x, I16x32 y) {
  return {vorrq_s16(x.a, y.a), vorrq_s16(x.b, y.b), vorrq_s16(x.c, y.c), vorrq_s16(x.d, y.d)};
}
KVASIR_FORCE_INLINE I16x32 bit_or(I16x32 x, int y) {
  const int16x8_t bits = vdupq_n_s16(static_cast<std::int16_t>(y));
  return {vorrq_s16(x.a, bits), vorrq_s16(x.b, bits), vorrq_s16(x.c, bits), vorrq_s16(x.d, bits)};
}
// The bits of x where the mask has them, else those of y.
KVASIR_FORCE_INLINE I16x32 select_bits(int mask, I16x32 x, I16x32 y) {
  const uint16x8_t bits = vdupq_n_u16(static_cast<std::uint16_t>(mask));
  return {vbslq_s16(bits, x.a, y.a), vbslq_s16(bits, x.b, y.b), vbslq_s16(bits, x.c, y.c),
          vbslq_s16(bits, x.d, y.d)};
}
// The product of 16-bit integers whose high byte is 0 with the low byte of each integer of `bytes`. Both are
// unsigned, at most 127 and 255.
KVASIR_FORCE_INLINE I16x32 multiply_low_bytes(I16x32 x, I16x32 bytes) {
  const I16x32 low = bit_and(bytes, 0xff);
  return {vmulq_s16(x.a, low.a), vmulq_s16(x.b, low.b), vmulq_s16(x.c, low.c), vmulq_s16(x.d, low.d)};
}

// sum + the two products of each lane, in 32 bits that wrap around.
KVASIR_FORCE_INLINE int32x4_t add_products4(int32x4_t sum, int16x8_t x, int16x8_t y) {
  return vaddq_s32(sum, vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}
KVASIR_FORCE_INLINE I32x16 add_products(I32x16 sum, I16x32 x, I16x32 y) {
  return {add_products4(sum.a, x.a, y.a), add_products4(sum.b, x.b, y.b), add_products4(sum.c, x.c, y.c),
          add_products4(sum.d, x.d, y.d)};
}
KVASIR_FORCE_INLINE I32x16 zero_int() {
  const int32x4_t zeros = vdupq_n_s32(0);
  return {zeros, zeros, zeros, zeros};
}

// The first and the second 16-bit integers as numbers, and the other way round.
KVASIR_FORCE_INLINE int32x4_t odd_i16_of_4(int16x8_t x) { return vshrq_n_s32(vreinterpretq_s32_s16(x), 16); }
KVASIR_FORCE_INLINE int32x4_t even_i16_of_4(int16x8_t x) {
  return vshrq_n_s32(vshlq_n_s32(vreinterpretq_s32_s16(x), 16), 16);
}
KVASIR_FORCE_INLINE I32x16 even_i16(I16x32 x) {
  return {even_i16_of_4(x.a), even_i16_of_4(x.b), even_i16_of_4(x.c), even_i16_of_4(x.d)};
}
KVASIR_FORCE_INLINE I32x16 odd_i16(I16x32 x) {
  return {odd_i16_of_4(x.a), odd_i16_of_4(x.b), odd_i16_of_4(x.c), odd_i16_of_4(x.d)};
}
KVASIR_FORCE_INLINE I16x32 join_i16(I32x16 even, I32x16 odd) {
  return {vreinterpretq_s16_s32(vsliq_n_s32(even.a, odd.a, 16)),
          vreinterpretq_s16_s32(vsliq_n_s32(even.b, odd.b, 16)),
          vreinterpretq_s16_s32(vsliq_n_s32(even.c, odd.c, 16)),
          vreinterpretq_s16_s32(vsliq_n_s32(even.d, odd.d, 16))};
}
// The lanes side by side, as numbers of 16 bits.
KVASIR_FORCE_INLINE void store_as_i16(std::int16_t* p, I32x16 x) {
  vst1q_s16(p, vcombine_s16(vqmovn_s32(x.a), vqmovn_s32(x.b)));
  vst1q_s16(p + 8, vcombine_s16(vqmovn_s32(x.c), vqmovn_s32(x.d)));
}

}  // namespace kvasir::kernels::neon
