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

// x times the standard normal distribution function. Its tail below -|x| is exp(-x^2/2) t P(t) / 2 with
// t = 1 / (1 + 0.47 |x| / sqrt(2)). P fits exp(z^2) erfc(z) / t by Chebyshev's nodes to 2e-8 of it.
struct GeluErf {
  static KVASIR_FORCE_INLINE F32x16 apply(F32x16 x) {
    const F32x16 one = broadcast(1.0f), magnitude = abs(x);
    const F32x16 t = div(one, fma(magnitude, broadcast(0.33234018716f), one));
    F32x16 p = broadcast(-0.01692715846002102f);
    p = fma(p, t, broadcast(0.041662588715553284f));
    p = fma(p, t, broadcast(0.06745830178260803f));
    p = fma(p, t, broadcast(-0.30942267179489136f));
    p = fma(p, t, broadcast(0.2661372721195221f));
    p = fma(p, t, broadcast(-0.023621940985322f));
    p = fma(p, t, broadcast(0.21469508111476898f));
    p = fma(p, t, broadcast(0.22901146113872528f));
    p = fma(p, t, broadcast(0.2658681273460388f));
    p = fma(p, t, broadcast(0.2651389241218567f));
    const F32x16 gauss = exp(mul(mul(x, x), broadcast(-0.5f)));
    const F32x16 tail = mul(mul(broadcast(0.5f), gauss), mul(t, p));
    return mul(x, select(less(x, zero()), tail, sub(one, tail)));
  }
};

template <class Activation>
static void gated(const float* gate, const float* up, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 value = Activation::apply(load(gate + i));
    store(out + i, up == nullptr ? value : mul(value, load(up + i)));
  }
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const F32x16 value = Activation::apply(load_partial(gate + i, rest));
    store_partial(out + i, up == nullptr ? value : mul(value, load_partial(up + i, rest)), rest);
  }
}

void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  gated<Silu>(gate, up, n, out);
}

void gelu_tanh_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  gated<GeluTanh>(gate, up, n, out);
}

void gelu_erf_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  gated<GeluErf>(gate, up, n, out);
}

KVASIR_FORCE_INLINE F32x16 at_most(F32x16 x, F32x16 limit) { return select(less(limit, x), limit, x); }

void swiglu_oai(const float* gate, const float* up, std::int64_t n, float* out) {
  const F32x16 limit = broadcast(7.0f), least = broadcast(-7.0f);
  for (std::int64_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    const F32x16 g = at_most(load_partial(gate + i, lanes), limit);
    const F32x16 below = at_most(load_partial(up + i, lanes), limit);
    const F32x16 u = select(less(below, least), least, below);
    const F32x16 glu = sigmoid_times(g, mul(g, broadcast(1.702f)));
    store_partial(out + i, mul(glu, add(u, broadcast(1.0f))), lanes);
  }
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

void add_scaled(const float* x, float factor, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    const F32x16 before = load_partial(sum + i, lanes);
    store_partial(sum + i, fma(load_partial(x + i, lanes), broadcast(factor), before), lanes);
  }
}

// cap * tanh(x / cap).
KVASIR_FORCE_INLINE F32x16 capped(F32x16 value, F32x16 limit) {
  const F32x16 one = broadcast(1.0f);
  const F32x16 x = div(value, limit);
  const F32x16 e = exp(mul(broadcast(-2.0f), abs(x)));
  const F32x16 magnitude = mul(limit, div(sub(one, e), add(one, e)));
  return select(less(x, zero()), sub(zero(), magnitude), magnitude);
}

void soft_cap(const float* x, float cap, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    store_partial(out + i, capped(load_partial(x + i, lanes), broadcast(cap)), lanes);
  }
}
