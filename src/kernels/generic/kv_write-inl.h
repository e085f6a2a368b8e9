// Rounding new keys and values into their block. Included inside an ISA's namespace and target region.

// The least magnitude that rounds to infinity in binary16.
inline constexpr float kBeyondHalf = 65520.0f;

// 1 in lanes that are NaN or of that magnitude and more, 0 in the others.
static F32x16 is_beyond(F32x16 x, float limit) {
  return select(less(abs(x), broadcast(limit)), zero(), broadcast(1.0f));
}

static bool write_kv_f16(const KvWriteArgs& args) {
  auto* k_cell = reinterpret_cast<std::uint16_t*>(args.cell) + args.slot;
  std::byte* values = args.cell + kv::key_bytes(args.format, args.head_dim);
  auto* v_row = reinterpret_cast<std::uint16_t*>(values) + args.slot * args.head_dim;
  F32x16 any_beyond = zero();
  for (std::int32_t d = 0; d < args.head_dim; d += 16) {
    const int lanes = args.head_dim - d < 16 ? args.head_dim - d : 16;
    const F32x16 k = load_partial(args.k + d, lanes), v = load_partial(args.v + d, lanes);
    std::uint16_t rounded[16];
    store_half(rounded, k);
    for (int i = 0; i < lanes; ++i) k_cell[(d + i) * kTokensPerCell] = rounded[i];
    store_half_partial(v_row + d, v, lanes);
    any_beyond = max(any_beyond, max(is_beyond(k, kBeyondHalf), is_beyond(v, kBeyondHalf)));
  }
  return reduce_max(any_beyond) == 0.0f;
}

bool write_kv(const KvWriteArgs& args) {
  if (args.format == KvFormat::kF16) return write_kv_f16(args);
  auto* k_cell = reinterpret_cast<float*>(args.cell) + args.slot;
  std::byte* values = args.cell + kv::key_bytes(args.format, args.head_dim);
  auto* v_row = reinterpret_cast<float*>(values) + args.slot * args.head_dim;
  bool are_finite = true;
  for (std::int32_t d = 0; d < args.head_dim; ++d) {
    k_cell[d * kTokensPerCell] = args.k[d];
    v_row[d] = args.v[d];
    are_finite = are_finite && __builtin_isfinite(args.k[d]) && __builtin_isfinite(args.v[d]);
  }
  return are_finite;
}
