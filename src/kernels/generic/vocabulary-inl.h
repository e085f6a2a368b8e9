// Reductions over a row of logits. Included inside an ISA's namespace and target region.

float max(const float* x, std::int64_t n) {
  const F32x16 lowest = broadcast(-__builtin_inff());
  F32x16 largest[4] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  // Of two operands max keeps the second when either is NaN, so a NaN in x is passed over.
  for (; i + 64 <= n; i += 64) {
    for (int a = 0; a < 4; ++a) largest[a] = max(load(x + i + 16 * a), largest[a]);
  }
  for (; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    const F32x16 value = select(first_lanes(lanes), load_partial(x + i, lanes), lowest);
    largest[0] = max(value, largest[0]);
  }
  return reduce_max(max(max(largest[0], largest[1]), max(largest[2], largest[3])));
}

// One tile of at most 1024 logits in float32: 64 additions deep, error below 4e-6 of the tile.
KVASIR_FORCE_INLINE float sum_exp_tile(const float* x, F32x16 max_value, int n) {
  F32x16 sum = zero();
  int i = 0;
  for (; i + 16 <= n; i += 16) sum = add(sum, exp(sub(load(x + i), max_value)));
  if (i < n) {
    const F32x16 value = exp(sub(load_partial(x + i, n - i), max_value));
    sum = add(sum, select(first_lanes(n - i), value, zero()));
  }
  return reduce_add(sum);
}

double sum_exp(const float* x, float max, std::int64_t n) {
  const F32x16 max_value = broadcast(max);
  double total = 0.0;
  for (std::int64_t i = 0; i < n; i += 1024) {
    const int lanes = n - i < 1024 ? static_cast<int>(n - i) : 1024;
    total += static_cast<double>(sum_exp_tile(x + i, max_value, lanes));
  }
  return total;
}
