// Sixteen float32 lanes on NEON: four q registers. x86/avx2/simd.h has the same names and gives the same bits.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/force_inline.h"

namespace kvasir::kernels::neon {

struct F32x16 {
  float32x4_t a, b, c, d;
};
struct I32x16 {
  int32x4_t a, b, c, d;
};
// One truth value per lane, as all ones or zeros.
struct Mask16 {
  uint32x4_t a, b, c, d;
};

// F32x16 that fit in the register file: 32 q registers.
inline constexpr int kVectorRegisters = 8;

// --- Four lanes ---

// The operations of x86: a NaN in either gives y, and so do two zeros.
KVASIR_FORCE_INLINE float32x4_t max4(float32x4_t x, float32x4_t y) {
  return vbslq_f32(vcgtq_f32(x, y), x, y);
}
KVASIR_FORCE_INLINE float32x4_t min4(float32x4_t x, float32x4_t y) {
  return vbslq_f32(vcltq_f32(x, y), x, y);
}
// To the nearest integer, ties to even; INT32_MIN where none is, as on x86.
KVASIR_FORCE_INLINE int32x4_t round4(float32x4_t x) {
  return vbslq_s32(vcaltq_f32(x, vdupq_n_f32(0x1p31f)), vcvtnq_s32_f32(x), vdupq_n_s32(INT32_MIN));
}
// The first n elements, of which there are four at most; the others load as 0.
KVASIR_FORCE_INLINE float32x4_t load4_partial(const float* p, int n) {
  if (n >= 4) return vld1q_f32(p);
  const float32x4_t zeros = vdupq_n_f32(0.0f);
  if (n <= 0) return zeros;
  if (n == 1) return vld1q_lane_f32(p, zeros, 0);
  const float32x4_t two = vcombine_f32(vld1_f32(p), vget_low_f32(zeros));
  return n == 2 ? two : vld1q_lane_f32(p + 2, two, 2);
}
KVASIR_FORCE_INLINE void store4_partial(float* p, float32x4_t x, int n) {
  if (n >= 4) return vst1q_f32(p, x);
  if (n == 1) return vst1q_lane_f32(p, x, 0);
  if (n >= 2) vst1_f32(p, vget_low_f32(x));
  if (n == 3) vst1q_lane_f32(p + 2, x, 2);
}
// 0, 1, 2, 3 below n.
KVASIR_FORCE_INLINE uint32x4_t first4(int n) {
  const int32x4_t lanes = {0, 1, 2, 3};
  return vcgtq_s32(vdupq_n_s32(n), lanes);
}
// IEEE binary16; rounds to nearest even.
KVASIR_FORCE_INLINE float32x4_t load4_half(const std::uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
KVASIR_FORCE_INLINE void store4_half(std::uint16_t* p, float32x4_t x) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
}
KVASIR_FORCE_INLINE float32x4_t load4_bf16(const std::uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

// --- Sixteen lanes ---

KVASIR_FORCE_INLINE F32x16 broadcast(float x) {
  const float32x4_t all = vdupq_n_f32(x);
  return {all, all, all, all};
}
KVASIR_FORCE_INLINE F32x16 zero() { return broadcast(0.0f); }
KVASIR_FORCE_INLINE F32x16 broadcast_first(F32x16 x) {
  const float32x4_t first = vdupq_laneq_f32(x.a, 0);
  return {first, first, first, first};
}

// Lanes [0, n); the others are false. 0 <= n <= 16.
KVASIR_FORCE_INLINE Mask16 first_lanes(int n) {
  return {first4(n), first4(n - 4), first4(n - 8), first4(n - 12)};
}

// The lanes whose bits are set.
KVASIR_FORCE_INLINE Mask16 lanes_of(std::uint16_t bits) {
  const uint32x4_t all = vdupq_n_u32(bits);
  const std::uint32_t kFirst[4] = {1, 2, 4, 8};
  const uint32x4_t first = vld1q_u32(kFirst);
  return {vtstq_u32(all, first), vtstq_u32(all, vshlq_n_u32(first, 4)), vtstq_u32(all, vshlq_n_u32(first, 8)),
          vtstq_u32(all, vshlq_n_u32(first, 12))};
}

// No pointer needs alignment. A partial load or store touches the first n elements only; other lanes load as
// 0.
KVASIR_FORCE_INLINE F32x16 load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
KVASIR_FORCE_INLINE F32x16 load_partial(const float* p, int n) {
  return {load4_partial(p, n), load4_partial(p + 4, n - 4), load4_partial(p + 8, n - 8),
          load4_partial(p + 12, n - 12)};
}
KVASIR_FORCE_INLINE void store(float* p, F32x16 x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
  vst1q_f32(p + 8, x.c);
  vst1q_f32(p + 12, x.d);
}
KVASIR_FORCE_INLINE void store_partial(float* p, F32x16 x, int n) {
  store4_partial(p, x.a, n);
  store4_partial(p + 4, x.b, n - 4);
  store4_partial(p + 8, x.c, n - 8);
  store4_partial(p + 12, x.d, n - 12);
}

// IEEE binary16; stores round to nearest even.
KVASIR_FORCE_INLINE F32x16 load_half(const std::uint16_t* p) {
  return {load4_half(p), load4_half(p + 4), load4_half(p + 8), load4_half(p + 12)};
}
KVASIR_FORCE_INLINE F32x16 load_half_partial(const std::uint16_t* p, int n) {
  std::uint16_t whole[16] = {};
  for (int i = 0; i < n; ++i) whole[i] = p[i];
  return load_half(whole);
}
KVASIR_FORCE_INLINE void store_half(std::uint16_t* p, F32x16 x) {
  store4_half(p, x.a);
  store4_half(p + 4, x.b);
  store4_half(p + 8, x.c);
  store4_half(p + 12, x.d);
}
KVASIR_FORCE_INLINE void store_half_partial(std::uint16_t* p, F32x16 x, int n) {
  std::uint16_t whole[16];
  store_half(whole, x);
  for (int i = 0; i < n; ++i) p[i] = whole[i];
}
// Eight floats, each in two neighbouring lanes: p[0] p[0] p[1] p[1] ...
KVASIR_FORCE_INLINE F32x16 load_twice(const float* p) {
  const float32x4_t low = vld1q_f32(p), high = vld1q_f32(p + 4);
  return {vzip1q_f32(low, low), vzip2q_f32(low, low), vzip1q_f32(high, high), vzip2q_f32(high, high)};
}

KVASIR_FORCE_INLINE F32x16 add(F32x16 x, F32x16 y) {
  return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 sub(F32x16 x, F32x16 y) {
  return {vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 mul(F32x16 x, F32x16 y) {
  return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 div(F32x16 x, F32x16 y) {
  return {vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 sqrt(F32x16 x) {
  return {vsqrtq_f32(x.a), vsqrtq_f32(x.b), vsqrtq_f32(x.c), vsqrtq_f32(x.d)};
}
// x * y + z and x * y - z, rounded once.
KVASIR_FORCE_INLINE F32x16 fma(F32x16 x, F32x16 y, F32x16 z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
          vfmaq_f32(z.d, x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 fms(F32x16 x, F32x16 y, F32x16 z) {
  return {vfmaq_f32(vnegq_f32(z.a), x.a, y.a), vfmaq_f32(vnegq_f32(z.b), x.b, y.b),
          vfmaq_f32(vnegq_f32(z.c), x.c, y.c), vfmaq_f32(vnegq_f32(z.d), x.d, y.d)};
}
// Even lanes x * y - z, odd lanes x * y + z.
KVASIR_FORCE_INLINE F32x16 fma_alternating(F32x16 x, F32x16 y, F32x16 z) {
  const uint32x4_t even_signs = {0x80000000u, 0, 0x80000000u, 0};
  const auto turned = [&](float32x4_t v) {
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(v), even_signs));
  };
  return {vfmaq_f32(turned(z.a), x.a, y.a), vfmaq_f32(turned(z.b), x.b, y.b),
          vfmaq_f32(turned(z.c), x.c, y.c), vfmaq_f32(turned(z.d), x.d, y.d)};
}
// A NaN in either gives y.
KVASIR_FORCE_INLINE F32x16 max(F32x16 x, F32x16 y) {
  return {max4(x.a, y.a), max4(x.b, y.b), max4(x.c, y.c), max4(x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 min(F32x16 x, F32x16 y) {
  return {min4(x.a, y.a), min4(x.b, y.b), min4(x.c, y.c), min4(x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 abs(F32x16 x) {
  return {vabsq_f32(x.a), vabsq_f32(x.b), vabsq_f32(x.c), vabsq_f32(x.d)};
}
// False where either is NaN.
KVASIR_FORCE_INLINE Mask16 less(F32x16 x, F32x16 y) {
  return {vcltq_f32(x.a, y.a), vcltq_f32(x.b, y.b), vcltq_f32(x.c, y.c), vcltq_f32(x.d, y.d)};
}
KVASIR_FORCE_INLINE Mask16 equal(F32x16 x, F32x16 y) {
  return {vceqq_f32(x.a, y.a), vceqq_f32(x.b, y.b), vceqq_f32(x.c, y.c), vceqq_f32(x.d, y.d)};
}
// x and not y.
KVASIR_FORCE_INLINE Mask16 and_not(Mask16 x, Mask16 y) {
  return {vbicq_u32(x.a, y.a), vbicq_u32(x.b, y.b), vbicq_u32(x.c, y.c), vbicq_u32(x.d, y.d)};
}
KVASIR_FORCE_INLINE F32x16 select(Mask16 mask, F32x16 if_true, F32x16 if_false) {
  return {vbslq_f32(mask.a, if_true.a, if_false.a), vbslq_f32(mask.b, if_true.b, if_false.b),
          vbslq_f32(mask.c, if_true.c, if_false.c), vbslq_f32(mask.d, if_true.d, if_false.d)};
}
// x + y where the mask says so, else x, which is not -0.
KVASIR_FORCE_INLINE F32x16 add_where(Mask16 mask, F32x16 x, F32x16 y) {
  const auto masked = [](uint32x4_t lanes, float32x4_t b) { return vreinterpretq_f32_u32(vandq_u32(lanes, vreinterpretq_u32_f32(b))); };
  return {vaddq_f32(x.a, masked(mask.a, y.a)), vaddq_f32(x.b, masked(mask.b, y.b)), vaddq_f32(x.c, masked(mask.c, y.c)),
          vaddq_f32(x.d, masked(mask.d, y.d))};
}

KVASIR_FORCE_INLINE F32x16 to_float(I32x16 x) {
  return {vcvtq_f32_s32(x.a), vcvtq_f32_s32(x.b), vcvtq_f32_s32(x.c), vcvtq_f32_s32(x.d)};
}
KVASIR_FORCE_INLINE I32x16 bits_of(F32x16 x) {
  return {vreinterpretq_s32_f32(x.a), vreinterpretq_s32_f32(x.b), vreinterpretq_s32_f32(x.c),
          vreinterpretq_s32_f32(x.d)};
}
KVASIR_FORCE_INLINE F32x16 float_from_bits(I32x16 x) {
  return {vreinterpretq_f32_s32(x.a), vreinterpretq_f32_s32(x.b), vreinterpretq_f32_s32(x.c),
          vreinterpretq_f32_s32(x.d)};
}
template <int kBits>
KVASIR_FORCE_INLINE I32x16 shift_left(I32x16 x) {
  return {vshlq_n_s32(x.a, kBits), vshlq_n_s32(x.b, kBits), vshlq_n_s32(x.c, kBits), vshlq_n_s32(x.d, kBits)};
}
KVASIR_FORCE_INLINE I32x16 bit_and(I32x16 x, int y) {
  const int32x4_t mask = vdupq_n_s32(y);
  return {vandq_s32(x.a, mask), vandq_s32(x.b, mask), vandq_s32(x.c, mask), vandq_s32(x.d, mask)};
}
// To the nearest integer, ties to even.
KVASIR_FORCE_INLINE I32x16 round_to_int(F32x16 x) {
  return {round4(x.a), round4(x.b), round4(x.c), round4(x.d)};
}
// The low byte of each lane.
KVASIR_FORCE_INLINE void store_bytes(void* p, I32x16 x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(x.a), vmovn_s32(x.b));
  const int16x8_t high = vcombine_s16(vmovn_s32(x.c), vmovn_s32(x.d));
  vst1q_s8(static_cast<std::int8_t*>(p), vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
// Lane i trades places with lane i ^ kDistance: 1, 2, 4 or 8.
template <int kDistance>
KVASIR_FORCE_INLINE F32x16 swap_lanes(F32x16 x) {
  if constexpr (kDistance == 1)
    return {vrev64q_f32(x.a), vrev64q_f32(x.b), vrev64q_f32(x.c), vrev64q_f32(x.d)};
  if constexpr (kDistance == 2)
    return {vextq_f32(x.a, x.a, 2), vextq_f32(x.b, x.b, 2), vextq_f32(x.c, x.c, 2), vextq_f32(x.d, x.d, 2)};
  if constexpr (kDistance == 4) return {x.b, x.a, x.d, x.c};
  if constexpr (kDistance == 8) return {x.c, x.d, x.a, x.b};
}

// The tree of both reductions: lane i meets i + 8, then i + 4, i + 2, i + 1.
KVASIR_FORCE_INLINE float32x4_t add_to_four(F32x16 x) {
  return vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
}
KVASIR_FORCE_INLINE float reduce_add(F32x16 x) {
  const float32x4_t four = add_to_four(x);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
// sums[i] = reduce_add of the i-th operand, with its bits.
KVASIR_FORCE_INLINE void reduce_add4(F32x16 x, F32x16 y, F32x16 z, F32x16 w, float* sums) {
  const float64x2_t x4 = vreinterpretq_f64_f32(add_to_four(x)), y4 = vreinterpretq_f64_f32(add_to_four(y));
  const float64x2_t z4 = vreinterpretq_f64_f32(add_to_four(z)), w4 = vreinterpretq_f64_f32(add_to_four(w));
  const float32x4_t xy = vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(x4, y4)),  // 2 of x, 2 of y
                                   vreinterpretq_f32_f64(vzip2q_f64(x4, y4)));
  const float32x4_t zw = vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(z4, w4)),
                                   vreinterpretq_f32_f64(vzip2q_f64(z4, w4)));
  vst1q_f32(sums, vpaddq_f32(xy, zw));
}
KVASIR_FORCE_INLINE float reduce_max(F32x16 x) {
  const float32x4_t four = max4(max4(x.a, x.c), max4(x.b, x.d));
  const float32x4_t two = max4(four, vextq_f32(four, four, 2));
  return vgetq_lane_f32(max4(two, vrev64q_f32(two)), 0);
}

#include "kernels/generic/exp-inl.h"

}  // namespace kvasir::kernels::neon
