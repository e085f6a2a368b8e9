// The measures that policies want of a cell's keys and values. Included inside an ISA's namespace and target
// region, after attention-inl.h, whose readers of halves these are.

// Turns keys [head_dim][16] into unit keys, and returns the inverses of their lengths; 0 of a key that is 0.
static F32x16 make_unit_keys(float* keys, std::int32_t head_dim) {
  F32x16 squares = zero();
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const F32x16 key = load(keys + d * kTokensPerCell);
    squares = fma(key, key, squares);
  }
  const F32x16 inverse = select(less(zero(), squares), div(broadcast(1.0f), sqrt(squares)), zero());
  for (std::int64_t d = 0; d < head_dim; ++d) {
    store(keys + d * kTokensPerCell, mul(load(keys + d * kTokensPerCell), inverse));
  }
  return inverse;
}

// Adds the unit keys to their running sum, and returns the mean of -cos(key, sum).
static float measure_distinctness(const float* unit_keys, std::int32_t head_dim, float* key_sum) {
  F32x16 dots = zero();
  float square = 0.0f;
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const F32x16 keys = load(unit_keys + d * kTokensPerCell);
    key_sum[d] += reduce_add(keys);
    dots = fma(keys, broadcast(key_sum[d]), dots);
    square = __builtin_fmaf(key_sum[d], key_sum[d], square);
  }
  if (!(square > 0.0f)) return 0.0f;
  return -reduce_add(dots) / (__builtin_sqrtf(square) * static_cast<float>(kTokensPerCell));
}

// |value| of each token; values are [16][head_dim].
static void measure_values(const float* values, std::int32_t head_dim, float* lengths) {
  for (std::int64_t t = 0; t < kTokensPerCell; ++t) {
    F32x16 squares = zero();
    for (std::int64_t d = 0; d < head_dim; d += 16) {
      const int lanes = head_dim - d < 16 ? static_cast<int>(head_dim - d) : 16;
      const F32x16 value = load_partial(values + t * head_dim + d, lanes);
      squares = fma(value, value, squares);
    }
    lengths[t] = __builtin_sqrtf(reduce_add(squares));
  }
}

// Mean over the tokens of |value| times the inverse of |key|.
static float mean_value_key_ratio(const float* lengths, F32x16 inverse_keys) {
  alignas(64) float inverses[kTokensPerCell];
  store(inverses, inverse_keys);
  float sum = 0.0f;
  for (int t = 0; t < kTokensPerCell; ++t) sum = __builtin_fmaf(lengths[t], inverses[t], sum);
  return sum / static_cast<float>(kTokensPerCell);
}

void measure_cell(const CellMeasureArgs& args) {
  const kv::KvCodes codes = kv::codes_of(args.format);
  alignas(64) float numbers[kMaxHalfNumbers];
  if (codes.keys == kv::KvCode::kComponents) {
    read_keys_components(*args.basis, args.block, args.cell, args.head_dim, numbers);
  } else {
    read_keys(codes.keys, args.cell, args.head_dim, numbers);
  }
  if (kv::is_rotated(codes.keys)) rotate_keys(numbers, args.head_dim);
  const F32x16 inverse_keys = make_unit_keys(numbers, args.head_dim);
  if (args.key_sum != nullptr) {
    *args.distinctness = measure_distinctness(numbers, args.head_dim, args.key_sum);
  }
  if (args.value_key_ratio == nullptr && args.longest_value == nullptr) return;
  read_values(codes.values, args.cell + kv::key_bytes(args.format, args.head_dim), args.head_dim, numbers);
  alignas(64) float lengths[kTokensPerCell];
  measure_values(numbers, args.head_dim, lengths);
  if (args.value_key_ratio != nullptr) *args.value_key_ratio = mean_value_key_ratio(lengths, inverse_keys);
  if (args.longest_value != nullptr) *args.longest_value = reduce_max(load(lengths));
}
