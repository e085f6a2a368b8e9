// Eight packed rows on NEON: their float sums, and their codes. What all of ARM's instruction sets share of a
// matmul; each has a dot.h of its own for the integer dots.
#pragma once

#include "kernels/activation.h"
#include "kernels/arm/neon/simd.h"

namespace kvasir::kernels::neon {

// Rows a pair of vectors covers, and the float and code vectors of that many rows.
inline constexpr int kLanes = 8;
struct FloatLanes {
  float32x4_t a, b;
};
struct IntLanes {
  int32x4_t a, b;
};
// Codes of one group of 4: four consecutive inputs per row. Below 64, except those of load_byte_codes, which are
// signed.
struct CodeLanes {
  int8x16_t a, b;
};

KVASIR_FORCE_INLINE IntLanes broadcast_int_lanes(std::int32_t x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }
KVASIR_FORCE_INLINE IntLanes zero_int_lanes() { return broadcast_int_lanes(0); }
// a + sum * 2^kOutlierShift
KVASIR_FORCE_INLINE IntLanes add_outliers(IntLanes a, IntLanes sum) {
  return {vaddq_s32(a.a, vshlq_n_s32(sum.a, kOutlierShift)),
          vaddq_s32(a.b, vshlq_n_s32(sum.b, kOutlierShift))};
}
KVASIR_FORCE_INLINE FloatLanes broadcast_lanes(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
KVASIR_FORCE_INLINE FloatLanes zero_lanes() { return broadcast_lanes(0.0f); }
KVASIR_FORCE_INLINE FloatLanes negate(FloatLanes a) { return {vnegq_f32(a.a), vnegq_f32(a.b)}; }
KVASIR_FORCE_INLINE FloatLanes magnitude(FloatLanes a) { return {vabsq_f32(a.a), vabsq_f32(a.b)}; }
KVASIR_FORCE_INLINE FloatLanes add(FloatLanes a, FloatLanes b) {
  return {vaddq_f32(a.a, b.a), vaddq_f32(a.b, b.b)};
}
KVASIR_FORCE_INLINE FloatLanes mul(FloatLanes a, FloatLanes b) {
  return {vmulq_f32(a.a, b.a), vmulq_f32(a.b, b.b)};
}
KVASIR_FORCE_INLINE FloatLanes fma(FloatLanes a, FloatLanes b, FloatLanes c) {
  return {vfmaq_f32(c.a, a.a, b.a), vfmaq_f32(c.b, a.b, b.b)};
}
KVASIR_FORCE_INLINE FloatLanes to_float(IntLanes a) { return {vcvtq_f32_s32(a.a), vcvtq_f32_s32(a.b)}; }
KVASIR_FORCE_INLINE FloatLanes load_lanes(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
KVASIR_FORCE_INLINE FloatLanes load_half_lanes(const std::uint16_t* p) {
  return {load4_half(p), load4_half(p + 4)};
}
KVASIR_FORCE_INLINE FloatLanes load_bf16_lanes(const std::uint16_t* p) {
  return {load4_bf16(p), load4_bf16(p + 4)};
}
KVASIR_FORCE_INLINE FloatLanes load_int_lanes(const std::uint8_t* p) {
  const uint16x8_t wide = vmovl_u8(vld1_u8(p));
  return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide))), vcvtq_f32_u32(vmovl_high_u16(wide))};
}
KVASIR_FORCE_INLINE FloatLanes load_int_lanes(const std::int8_t* p) {
  const int16x8_t wide = vmovl_s8(vld1_s8(p));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), vcvtq_f32_s32(vmovl_high_s16(wide))};
}
// 2^(byte - 127), but 0 for 0.
KVASIR_FORCE_INLINE FloatLanes load_exponent_lanes(const std::uint8_t* p) {
  const uint16x8_t wide = vmovl_u8(vld1_u8(p));
  return {vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(wide)), 23)),
          vreinterpretq_f32_u32(vshlq_n_u32(vmovl_high_u16(wide), 23))};
}
// The first n lanes, n at least 0; others load as 0.
KVASIR_FORCE_INLINE FloatLanes load_lanes(const float* p, int n) {
  return {load4_partial(p, n), load4_partial(p + 4, n - 4)};
}
KVASIR_FORCE_INLINE void store_lanes(float* p, FloatLanes a, int n) {
  store4_partial(p, a.a, n);
  store4_partial(p + 4, a.b, n - 4);
}

KVASIR_FORCE_INLINE int8x16_t load16_codes(const std::uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }
KVASIR_FORCE_INLINE CodeLanes load_codes(const std::uint8_t* p) {
  return {load16_codes(p), load16_codes(p + 16)};
}
// Codes of 8 bits become signed again, as products of bytes want them.
KVASIR_FORCE_INLINE int8x16_t flip_sign(int8x16_t codes) { return veorq_s8(codes, vdupq_n_s8(INT8_MIN)); }
KVASIR_FORCE_INLINE CodeLanes load_byte_codes(const std::uint8_t* p) {
  return {flip_sign(load16_codes(p)), flip_sign(load16_codes(p + 16))};
}

// Byte codes that nibbles stand for, signed as load_byte_codes has them.
struct CodeTable {
  int8x16_t v;
};
KVASIR_FORCE_INLINE CodeTable load_byte_code_table(const std::uint8_t* codes) {
  return {flip_sign(load16_codes(codes))};
}
KVASIR_FORCE_INLINE CodeLanes look_up(CodeTable table, CodeLanes nibbles) {
  return {vqtbl1q_s8(table.v, vreinterpretq_u8_s8(nibbles.a)),
          vqtbl1q_s8(table.v, vreinterpretq_u8_s8(nibbles.b))};
}

// Codes keep their width, as on AVX2.
inline constexpr bool kScalesCodes = false;

// Bytes shifted left by kShift, or right by -kShift.
template <int kShift>
KVASIR_FORCE_INLINE int8x16_t shift_bytes(int8x16_t a) {
  if constexpr (kShift > 0) {
    return vshlq_n_s8(a, kShift);
  } else if constexpr (kShift < 0) {
    return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(a), -kShift));
  } else {
    return a;
  }
}

template <int kUp>
KVASIR_FORCE_INLINE CodeLanes low_nibbles(CodeLanes a) {
  static_assert(kUp == 0);
  const int8x16_t mask = vdupq_n_s8(0x0f);
  return {vandq_s8(a.a, mask), vandq_s8(a.b, mask)};
}
template <int kUp>
KVASIR_FORCE_INLINE CodeLanes high_nibbles(CodeLanes a) {
  static_assert(kUp == 0);
  return {shift_bytes<-4>(a.a), shift_bytes<-4>(a.b)};
}
// The byte codes, as load_byte_codes has them, whose high and low nibbles are the low nibbles of `high` and
// `low`; then those of their high nibbles.
KVASIR_FORCE_INLINE CodeLanes join_low_nibbles(CodeLanes high, CodeLanes low) {
  return {flip_sign(vsliq_n_s8(low.a, high.a, 4)), flip_sign(vsliq_n_s8(low.b, high.b, 4))};
}
KVASIR_FORCE_INLINE int8x16_t join16_high_nibbles(int8x16_t high, int8x16_t low) {
  return flip_sign(vreinterpretq_s8_u8(vsriq_n_u8(vreinterpretq_u8_s8(high), vreinterpretq_u8_s8(low), 4)));
}
KVASIR_FORCE_INLINE CodeLanes join_high_nibbles(CodeLanes high, CodeLanes low) {
  return {join16_high_nibbles(high.a, low.a), join16_high_nibbles(high.b, low.b)};
}
// (plane shifted left by kShift, or right by -kShift) & kMask
template <int kShift, int kMask>
KVASIR_FORCE_INLINE CodeLanes and_bits(CodeLanes plane) {
  const int8x16_t mask = vdupq_n_s8(kMask);
  return {vandq_s8(shift_bytes<kShift>(plane.a), mask), vandq_s8(shift_bytes<kShift>(plane.b), mask)};
}
// codes | (plane shifted left by kShift, or right by -kShift) & kMask
template <int kShift, int kMask>
KVASIR_FORCE_INLINE CodeLanes or_bits(CodeLanes codes, CodeLanes plane) {
  const CodeLanes bits = and_bits<kShift, kMask>(plane);
  return {vorrq_s8(codes.a, bits.a), vorrq_s8(codes.b, bits.b)};
}

// The same four activations for every row.
struct GroupOf4Lanes {
  int8x16_t v;
};
KVASIR_FORCE_INLINE GroupOf4Lanes broadcast_group_of_4(const std::int8_t* q) {
  std::int32_t four;
  __builtin_memcpy(&four, q, sizeof(four));
  return {vreinterpretq_s8_s32(vdupq_n_s32(four))};
}

// Codes of load_byte_codes are signed, so that sums begin at 0.
KVASIR_FORCE_INLINE IntLanes start_byte_sum(const ActivationBlock&) { return zero_int_lanes(); }

// zero * -sum(activations), where zero = 2^kZeroShift; 0 when kZeroShift is 0 or the codes are signed: where
// an accumulator over a block, or over one half of it, starts so that it ends as sum((code - zero) *
// activation).
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_sum_at(std::int32_t offset) {
  if constexpr (kZeroShift == 0 || kBits == 8) return zero_int_lanes();
  return broadcast_int_lanes(offset >> (7 - kZeroShift));
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_sum(const ActivationBlock& x) {
  return start_sum_at<kBits, kZeroShift>(x.offset);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_low_sum(const ActivationBlock& x) {
  return start_sum_at<kBits, kZeroShift>(x.offset - x.offset_high);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_high_sum(const ActivationBlock& x) {
  return start_sum_at<kBits, kZeroShift>(x.offset_high);
}

}  // namespace kvasir::kernels::neon
