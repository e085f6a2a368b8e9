// e^x with the bits of kernels/generic/exp-inl.h, and the functions made of it (kernels/generic/activation_fn-inl.h).
#pragma once

#include <cstdint>

#include "backend/cuda/simt/simt.h"

namespace kvasir::cuda {

KVASIR_DEVICE float exp_rn(float x) {
  const float clamped = simt::min_or_second(88.5f, simt::max_or_second(-88.0f, x));
  const float magic = 0x1.8p23f + 127.0f;
  const float shifted = simt::fma_rn(clamped, 0x1.715476p0f, magic);
  const float power = simt::float_of_bits(simt::bits_of(shifted) << 23);
  const float n = shifted - magic;
  const float high = simt::fma_rn(n, -0x1.63p-1f, clamped);
  const float r = simt::fma_rn(n, 0x1.bd0106p-13f, high);
  float p = 0x1.6a23dp-10f;
  p = simt::fma_rn(p, r, 0x1.123a2p-7f);
  p = simt::fma_rn(p, r, 0x1.5558f2p-5f);
  p = simt::fma_rn(p, r, 0x1.555492p-3f);
  p = simt::fma_rn(p, r, 0x1.fffffcp-2f);
  p = simt::fma_rn(p, r, 1.0f);
  p = simt::fma_rn(p, r, 1.0f);
  return p * power;
}

KVASIR_DEVICE float sigmoid_times(float x, float argument) {
  return simt::div_rn(x, 1.0f + exp_rn(0.0f - argument));
}

KVASIR_DEVICE float gelu_tanh(float x) {
  const float cubic = simt::fma_rn(x * x, 0.044715f, 1.0f);
  return sigmoid_times(x, (x * 1.5957691216f) * cubic);
}

KVASIR_DEVICE float gelu_erf(float x) {
  const float t = simt::div_rn(1.0f, simt::fma_rn(simt::magnitude(x), 0.33234018716f, 1.0f));
  float p = -0.01692715846002102f;
  p = simt::fma_rn(p, t, 0.041662588715553284f);
  p = simt::fma_rn(p, t, 0.06745830178260803f);
  p = simt::fma_rn(p, t, -0.30942267179489136f);
  p = simt::fma_rn(p, t, 0.2661372721195221f);
  p = simt::fma_rn(p, t, -0.023621940985322f);
  p = simt::fma_rn(p, t, 0.21469508111476898f);
  p = simt::fma_rn(p, t, 0.22901146113872528f);
  p = simt::fma_rn(p, t, 0.2658681273460388f);
  p = simt::fma_rn(p, t, 0.2651389241218567f);
  const float gauss = exp_rn((x * x) * -0.5f);
  const float tail = (0.5f * gauss) * (t * p);
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

// g sigmoid(1.702 g) (u + 1), with g at most 7 and u within [-7, 7].
KVASIR_DEVICE float swiglu_oai(float gate, float up) {
  const float g = 7.0f < gate ? 7.0f : gate;
  const float below = 7.0f < up ? 7.0f : up;
  const float u = below < -7.0f ? -7.0f : below;
  return sigmoid_times(g, g * 1.702f) * (u + 1.0f);
}

// cap * tanh(x / cap).
KVASIR_DEVICE float soft_capped(float value, float cap) {
  const float x = simt::div_rn(value, cap);
  const float e = exp_rn(-2.0f * simt::magnitude(x));
  const float magnitude = cap * simt::div_rn(1.0f - e, 1.0f + e);
  return x < 0.0f ? 0.0f - magnitude : magnitude;
}

}  // namespace kvasir::cuda
