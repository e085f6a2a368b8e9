// RMS and layer normalisation. Included inside an ISA's namespace and target region.

// Four accumulators over 64 inputs at a time, then one over what is left: an order that depends on n alone.
static float sum_of_squares(const float* x, std::int64_t n) {
  F32x16 acc[4] = {zero(), zero(), zero(), zero()};
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (int a = 0; a < 4; ++a) {
      const F32x16 value = load(x + i + 16 * a);
      acc[a] = fma(value, value, acc[a]);
    }
  }
  for (; i + 16 <= n; i += 16) {
    const F32x16 value = load(x + i);
    acc[0] = fma(value, value, acc[0]);
  }
  if (i < n) {
    const F32x16 value = load_partial(x + i, static_cast<int>(n - i));
    acc[0] = fma(value, value, acc[0]);
  }
  return reduce_add(add(add(acc[0], acc[1]), add(acc[2], acc[3])));
}

// 1 / sqrt(mean(x^2) + eps); NaN rather than 0 where the sum overflows, so that nobody takes zeros for norms.
static F32x16 norm_factor(const float* x, float eps, std::int64_t n) {
  const float sum = sum_of_squares(x, n);
  if (!(sum < __builtin_inff())) return broadcast(__builtin_nanf(""));
  const F32x16 mean = broadcast(sum / static_cast<float>(n));
  return div(broadcast(1.0f), sqrt(add(mean, broadcast(eps))));
}

void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* out) {
  const F32x16 factor = norm_factor(x, eps, n);
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, mul(mul(load(x + i), factor), load(weight + i)));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const F32x16 value = mul(mul(load_partial(x + i, rest), factor), load_partial(weight + i, rest));
    store_partial(out + i, value, rest);
  }
}

void rms_norm_add(const float* x, const float* weight, float eps, std::int64_t n, float* sum) {
  const F32x16 factor = norm_factor(x, eps, n);
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    store(sum + i, add(load(sum + i), mul(mul(load(x + i), factor), load(weight + i))));
  }
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const F32x16 value = mul(mul(load_partial(x + i, rest), factor), load_partial(weight + i, rest));
    store_partial(sum + i, add(load_partial(sum + i, rest), value), rest);
  }
}

// In the order of sum_of_squares: of x - shift, or of its square.
template <bool kSquares>
static float sum_of(const float* x, float shift, std::int64_t n) {
  F32x16 acc[4] = {zero(), zero(), zero(), zero()};
  const F32x16 shifts = broadcast(shift);
  for (std::int64_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    const F32x16 value = select(first_lanes(lanes), sub(load_partial(x + i, lanes), shifts), zero());
    F32x16& sum = acc[i / 16 % 4];
    sum = kSquares ? fma(value, value, sum) : add(sum, value);
  }
  return reduce_add(add(add(acc[0], acc[1]), add(acc[2], acc[3])));
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::int64_t n,
                float* out) {
  const auto count = static_cast<float>(n);
  const float mean = sum_of<false>(x, 0.0f, n) / count;
  const float squares = sum_of<true>(x, mean, n);
  F32x16 factor = broadcast(__builtin_nanf(""));
  if (squares < __builtin_inff()) {
    factor = div(broadcast(1.0f), sqrt(add(broadcast(squares / count), broadcast(eps))));
  }
  for (std::int64_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    const F32x16 centred = mul(sub(load_partial(x + i, lanes), broadcast(mean)), factor);
    store_partial(out + i, fma(centred, load_partial(weight + i, lanes), load_partial(bias + i, lanes)),
                  lanes);
  }
}
