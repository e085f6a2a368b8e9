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

// Writes the codes of a row and its scale; all 0 where a number is beyond the format, and then returns false.
static bool round_row_12(const float* row, std::int32_t head_dim, std::int16_t* codes,
                         std::uint16_t* scale_half) {
  F32x16 largest = zero(), any_beyond = zero();
  for (std::int32_t d = 0; d < head_dim; d += 16) {
    largest = max(abs(load(row + d)), largest);
    any_beyond = max(any_beyond, is_beyond(load(row + d), kv::kBeyond12));
  }
  const bool are_finite = reduce_max(any_beyond) == 0.0f;
  const F32x16 scale = rounded_to_half(fma(broadcast(are_finite ? reduce_max(largest) : 0.0f),
                                           broadcast(kv::kUnitMargin / kv::kGreatestCode12),
                                           broadcast(kv::kScaleMargin12)));
  store_half_partial(scale_half, scale, 1);
  const F32x16 inverse = inverse_of(scale);
  for (std::int32_t d = 0; d < head_dim; d += 16) {
    const F32x16 number = are_finite ? load(row + d) : zero();
    store_as_i16(codes + d, codes_within(mul(number, inverse), -kv::kGreatestCode12, kv::kGreatestCode12));
  }
  return are_finite;
}

// The i-th of three 16-bit integers for the upper bits of its own code and four bits of the fourth's; two
// 16-bit integers at once.
KVASIR_FORCE_INLINE std::uint32_t join_codes_12(std::uint32_t own, std::uint32_t fourth, int i) {
  return (own << 4 & 0xfff0fff0u) | (fourth >> 4 * i & 0x000f000fu);
}

static void write_key_codes_12(const std::int16_t* codes, std::int32_t head_dim, std::byte* of_token) {
  constexpr int kChannelsPerStep = 2 * Codes12::kVectorsPerStep;
  for (std::int32_t d = 0; d < head_dim; d += kChannelsPerStep, of_token += Codes12::kBytesPerStep) {
    std::uint32_t pairs[Codes12::kVectorsPerStep];
    __builtin_memcpy(pairs, codes + d, sizeof(pairs));
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t i16 = join_codes_12(pairs[i], pairs[3], i);
      __builtin_memcpy(of_token + 64 * i, &i16, sizeof(i16));
    }
  }
}

static void write_value_codes_12(const std::int16_t* codes, std::int32_t head_dim, std::byte* of_token) {
  for (std::int32_t d = 0; d < head_dim; d += 2 * kv::kChannelsPerScale) {
    for (int lane = 0; lane < 16; ++lane) {
      const auto code = [&](int i) { return static_cast<std::uint16_t>(codes[d + 16 * i + lane]); };
      for (int i = 0; i < 3; ++i) {
        const auto i16 = static_cast<std::uint16_t>(join_codes_12(code(i), code(3), i));
        __builtin_memcpy(of_token + 64 * i + 4 * lane, &i16, sizeof(i16));
      }
    }
    of_token += kTokensPerCell / 2 * Codes12::kBytesPerStep;
  }
}

static bool write_kv_q12(const KvWriteArgs& args) {
  const kv::KvHalfLayout layout = kv::half_layout(kv::KvCode::k12, args.head_dim);
  std::byte* values = args.cell + layout.bytes;
  const auto scale_in = [&](std::byte* half) {
    return reinterpret_cast<std::uint16_t*>(half + layout.scales) + args.slot;
  };
  alignas(64) std::int16_t codes[kMaxHeadDim];
  const bool is_key_finite = round_row_12(args.k, args.head_dim, codes, scale_in(args.cell));
  write_key_codes_12(codes, args.head_dim, args.cell + 4 * args.slot);
  const bool is_value_finite = round_row_12(args.v, args.head_dim, codes, scale_in(values));
  write_value_codes_12(codes, args.head_dim,
                       values + args.slot / 2 * Codes12::kBytesPerStep + 2 * (args.slot % 2));
  return is_key_finite && is_value_finite;
}

bool write_kv(const KvWriteArgs& args) {
  if (args.format == KvFormat::kF16) return write_kv_f16(args);
  if (args.format == KvFormat::kQ12) return write_kv_q12(args);
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
