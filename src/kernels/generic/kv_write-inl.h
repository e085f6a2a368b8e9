// Rounding new keys and values into their block. Included inside an ISA's namespace and target region.

static void write_kv_f16(const KvWriteArgs& args) {
  auto* k_cell = reinterpret_cast<std::uint16_t*>(args.cell) + args.slot;
  std::byte* values = args.cell + kv::key_bytes(args.format, args.head_dim);
  auto* v_row = reinterpret_cast<std::uint16_t*>(values) + args.slot * args.head_dim;
  for (std::int32_t d = 0; d < args.head_dim; d += 16) {
    const int lanes = args.head_dim - d < 16 ? args.head_dim - d : 16;
    std::uint16_t rounded[16];
    store_half(rounded, load_partial(args.k + d, lanes));
    for (int i = 0; i < lanes; ++i) k_cell[(d + i) * kTokensPerCell] = rounded[i];
    store_half_partial(v_row + d, load_partial(args.v + d, lanes), lanes);
  }
}

void write_kv(const KvWriteArgs& args) {
  if (args.format == KvFormat::kF16) return write_kv_f16(args);
  auto* k_cell = reinterpret_cast<float*>(args.cell) + args.slot;
  std::byte* values = args.cell + kv::key_bytes(args.format, args.head_dim);
  auto* v_row = reinterpret_cast<float*>(values) + args.slot * args.head_dim;
  for (std::int32_t d = 0; d < args.head_dim; ++d) {
    k_cell[d * kTokensPerCell] = args.k[d];
    v_row[d] = args.v[d];
  }
}
