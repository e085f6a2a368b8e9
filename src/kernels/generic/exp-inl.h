// e^x by range reduction to |r| <= ln(2)/2 and a degree 6 minimax polynomial (relative error 4e-9, so
// rounding dominates: about 1 ulp). Included by each simd.h inside its namespace and target region.
//
// exp(-inf) and everything below -87.7 is 0; above 88.4 it is infinity, 0.4 earlier than float32 would need;
// NaN stays NaN; exp(0) is exactly 1.

KVASIR_FORCE_INLINE F32x16 exp(F32x16 x) {
  // NaN is the second operand of max and min, which is the one they keep.
  const F32x16 clamped = min(broadcast(88.5f), max(broadcast(-88.0f), x));
  // Adding 1.5 * 2^23 + 127 rounds to an integer and leaves n + 127 in the low bits: the exponent field of
  // 2^n.
  const F32x16 magic = broadcast(0x1.8p23f + 127.0f);
  const F32x16 shifted = fma(clamped, broadcast(0x1.715476p0f), magic);
  const F32x16 power = float_from_bits(shift_left<23>(bits_of(shifted)));
  const F32x16 n = sub(shifted, magic);
  // ln(2) in two parts; n times the first is exact.
  const F32x16 high = fma(n, broadcast(-0x1.63p-1f), clamped);
  const F32x16 r = fma(n, broadcast(0x1.bd0106p-13f), high);
  F32x16 p = broadcast(0x1.6a23dp-10f);
  p = fma(p, r, broadcast(0x1.123a2p-7f));
  p = fma(p, r, broadcast(0x1.5558f2p-5f));
  p = fma(p, r, broadcast(0x1.555492p-3f));
  p = fma(p, r, broadcast(0x1.fffffcp-2f));
  p = fma(p, r, broadcast(1.0f));
  p = fma(p, r, broadcast(1.0f));
  return mul(p, power);
}
