// Rotary position embedding. Included inside an ISA's namespace and target region.
// A pair (a, b) becomes (fma(a, cos, -(b sin)), fma(b, cos, a sin)), whatever the style.

static void rope_interleaved(float* head, const float* cos, const float* sin, std::int32_t rotary_dim) {
  std::int32_t i = 0;
  for (; i + 16 <= rotary_dim; i += 16) {
    const F32x16 x = load(head + i);
    const F32x16 crossed = mul(swap_lanes<1>(x), load_twice(sin + i / 2));
    store(head + i, fma_alternating(x, load_twice(cos + i / 2), crossed));
  }
  for (; i < rotary_dim; i += 2) {
    const float a = head[i], b = head[i + 1], c = cos[i / 2], s = sin[i / 2];
    head[i] = __builtin_fmaf(a, c, -(b * s));
    head[i + 1] = __builtin_fmaf(b, c, a * s);
  }
}

static void rope_halves(float* head, const float* cos, const float* sin, std::int32_t rotary_dim) {
  const std::int32_t half = rotary_dim / 2;
  float* second = head + half;
  for (std::int32_t i = 0; i < half; i += 16) {
    const int lanes = half - i < 16 ? half - i : 16;
    const F32x16 a = load_partial(head + i, lanes), b = load_partial(second + i, lanes);
    const F32x16 c = load_partial(cos + i, lanes), s = load_partial(sin + i, lanes);
    store_partial(head + i, fms(a, c, mul(b, s)), lanes);
    store_partial(second + i, fma(b, c, mul(a, s)), lanes);
  }
}

void rope(float* head, const float* cos, const float* sin, std::int32_t rotary_dim, RopeStyle style) {
  if (style == RopeStyle::kInterleaved) {
    rope_interleaved(head, cos, sin, rotary_dim);
  } else {
    rope_halves(head, cos, sin, rotary_dim);
  }
}
