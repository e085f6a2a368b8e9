// Element-wise functions of the MLP and the residual stream. Included inside an ISA's namespace and target
// region. Each output is a function of its own inputs, so the lanes of a tail compute what whole vectors do.

KVASIR_FORCE_INLINE F32x16 sigmoid_times(F32x16 x, F32x16 argument) {
  const F32x16 one = broadcast(1.0f);
  return div(x, add(one, exp(sub(zero(), argument))));
}

struct Silu {
  static KVASIR_FORCE_INLINE F32x16 apply(F32x16 x) { return sigmoid_times(x, x); }
};

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), and (1 + tanh(u)) / 2 is sigmoid(2u): nothing cancels.
struct GeluTanh {
  static KVASIR_FORCE_INLINE F32x16 apply(F32x16 x) {
    const F32x16 cubic = fma(mul(x, x), broadcast(0.044715f), broadcast(1.0f));
    return sigmoid_times(x, mul(mul(x, broadcast(1.5957691216f)), cubic));
  }
};

template <class Activation>
static void gated(const float* gate, const float* up, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, mul(Activation::apply(load(gate + i)), load(up + i)));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const F32x16 value = mul(Activation::apply(load_partial(gate + i, rest)), load_partial(up + i, rest));
    store_partial(out + i, value, rest);
  }
}

void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  gated<Silu>(gate, up, n, out);
}

void gelu_tanh_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  gated<GeluTanh>(gate, up, n, out);
}

void add(const float* a, const float* b, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, add(load(a + i), load(b + i)));
  for (; i < n; ++i) out[i] = a[i] + b[i];
}

void scale(const float* x, float factor, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, mul(load(x + i), broadcast(factor)));
  for (; i < n; ++i) out[i] = x[i] * factor;
}
