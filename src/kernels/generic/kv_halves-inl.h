// Reading keys and values of every code (kv/cell.h) as float32, and the rotation of rows. Included inside an
// ISA's namespace and target region.
//
// A number has the same bits whoever reads it: of k8 code * scale, of k4 and k3 (code - zero) * scale, each
// rounded once; of k4Channel fma(code, step, low).

KVASIR_FORCE_INLINE F32x16 load_widened(const float* p) { return load(p); }
KVASIR_FORCE_INLINE F32x16 load_widened(const std::uint16_t* p) { return load_half(p); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const float* p, int n) { return load_partial(p, n); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const std::uint16_t* p, int n) {
  return load_half_partial(p, n);
}

// A reader of keys gives those of 16 tokens, one per lane, for a channel. After open() on the half of a cell,
// channels come in groups of 32: enter() first, then at() of each, of which kOdd says whether it is an odd
// one. kBytesPerChannel paces the prefetch of another cell; 0: none.
template <class Element, int kPrefetchedBytes>
struct KeysFloat {
  static constexpr int kBytesPerChannel = kPrefetchedBytes;
  const Element* numbers;
  void open(const std::byte* half, std::int64_t) { numbers = reinterpret_cast<const Element*>(half); }
  KVASIR_FORCE_INLINE void enter(std::int64_t) {}
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return load_widened(numbers + channel * kTokensPerCell);
  }
};
using KeysF32 = KeysFloat<float, 0>;  // copies in the caches, or a cache that is for tests
using KeysF16 = KeysFloat<std::uint16_t, 32>;

struct Keys8 {
  static constexpr int kBytesPerChannel = 16;
  const std::int8_t* codes;
  F32x16 scale;
  void open(const std::byte* half, std::int64_t head_dim) {
    codes = reinterpret_cast<const std::int8_t*>(half);
    scale = load_half(reinterpret_cast<const std::uint16_t*>(half + head_dim * kTokensPerCell));
  }
  KVASIR_FORCE_INLINE void enter(std::int64_t) {}
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return mul(to_float(load_bytes(codes + channel * kTokensPerCell)), scale);
  }
};

// Channels 2 i and 2 i + 1 share the bytes of row i.
template <bool kOdd>
KVASIR_FORCE_INLINE F32x16 nibbles_of_channel(const std::uint8_t* codes, std::int64_t channel) {
  const I32x16 pairs = load_bytes(codes + channel / 2 * kTokensPerCell);
  return to_float(kOdd ? shift_right<4>(pairs) : bit_and(pairs, 15));
}

struct Keys4 {
  static constexpr int kBytesPerChannel = 8;
  const std::uint8_t* codes;
  const std::uint16_t* scales;  // [head_dim / 32][16]
  F32x16 scale, of_code_0;
  void open(const std::byte* half, std::int64_t head_dim) {
    codes = reinterpret_cast<const std::uint8_t*>(half);
    scales = reinterpret_cast<const std::uint16_t*>(half + head_dim * kTokensPerCell / 2);
  }
  KVASIR_FORCE_INLINE void enter(std::int64_t group) {
    scale = load_half(scales + group * kTokensPerCell);
    of_code_0 = mul(scale, broadcast(-8.0f));  // exact, so the fma rounds (code - 8) * scale once
  }
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return fma(nibbles_of_channel<kOdd>(codes, channel), scale, of_code_0);
  }
};

struct Keys4Channel {
  static constexpr int kBytesPerChannel = 8;
  const std::uint8_t* codes;
  const std::uint8_t* steps;
  const std::int8_t* lows;
  F32x16 step_unit, low_unit;
  alignas(64) float step[kv::kChannelsPerScale];  // of the group
  alignas(64) float low[kv::kChannelsPerScale];
  void open(const std::byte* half, std::int64_t head_dim) {
    const kv::KvHalfLayout layout =
        kv::half_layout(kv::KvCode::k4Channel, static_cast<std::int32_t>(head_dim));
    codes = reinterpret_cast<const std::uint8_t*>(half);
    steps = reinterpret_cast<const std::uint8_t*>(half + layout.steps);
    lows = reinterpret_cast<const std::int8_t*>(half + layout.lows);
    const F32x16 units = load_half(reinterpret_cast<const std::uint16_t*>(half + layout.scales));
    alignas(64) float both[16];
    store(both, units);
    step_unit = broadcast(both[0]);
    low_unit = broadcast(both[1]);
  }
  KVASIR_FORCE_INLINE void enter(std::int64_t group) {
    for (int i = 0; i < kv::kChannelsPerScale; i += 16) {
      const std::int64_t channel = group * kv::kChannelsPerScale + i;
      store(step + i, mul(to_float(load_bytes(steps + channel)), step_unit));
      store(low + i, mul(to_float(load_bytes(lows + channel)), low_unit));
    }
  }
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    const std::int64_t i = channel % kv::kChannelsPerScale;
    return fma(nibbles_of_channel<kOdd>(codes, channel), broadcast(step[i]), broadcast(low[i]));
  }
};

// Sixteen 3-bit codes in two planes, less 4.
KVASIR_FORCE_INLINE F32x16 three_bit_codes(const std::uint32_t* low, const std::uint16_t* high,
                                           std::int64_t index) {
  const I32x16 code = bit_or(spread_bits<2>(low[index]), shift_left<2>(spread_bits<1>(high[index])));
  return to_float(add(code, -4));
}

struct Keys3 {
  static constexpr int kBytesPerChannel = 6;
  const std::uint32_t* low;
  const std::uint16_t* high;
  const std::uint16_t* scales;
  F32x16 scale;
  void open(const std::byte* half, std::int64_t head_dim) {
    const kv::KvHalfLayout layout = kv::half_layout(kv::KvCode::k3, static_cast<std::int32_t>(head_dim));
    low = reinterpret_cast<const std::uint32_t*>(half);
    high = reinterpret_cast<const std::uint16_t*>(half + layout.high);
    scales = reinterpret_cast<const std::uint16_t*>(half + layout.scales);
  }
  KVASIR_FORCE_INLINE void enter(std::int64_t group) { scale = load_half(scales + group * kTokensPerCell); }
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return mul(three_bit_codes(low, high, channel), scale);
  }
};

// A reader of values gives, after open(), 16 channels of a token, from a channel that is a multiple of 16.
// kBitsPerNumber paces the prefetch of another cell; 0: none.
template <class Element, int kPrefetchedBits>
struct ValuesFloat {
  static constexpr int kBitsPerNumber = kPrefetchedBits;
  const Element* numbers;
  std::int64_t head_dim;
  void open(const std::byte* half, std::int64_t of_head) {
    numbers = reinterpret_cast<const Element*>(half);
    head_dim = of_head;
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    return load_widened(numbers + token * head_dim + channel);
  }
  KVASIR_FORCE_INLINE F32x16 first(std::int64_t token, std::int64_t channel, int num_lanes) const {
    return load_widened_partial(numbers + token * head_dim + channel, num_lanes);
  }
};
using ValuesF32 = ValuesFloat<float, 0>;
using ValuesF16 = ValuesFloat<std::uint16_t, 16>;

struct Values8 {
  static constexpr int kBitsPerNumber = 8;
  const std::int8_t* codes;
  std::int64_t head_dim;
  alignas(64) float scale[kTokensPerCell];
  void open(const std::byte* half, std::int64_t of_head) {
    codes = reinterpret_cast<const std::int8_t*>(half);
    head_dim = of_head;
    store(scale, load_half(reinterpret_cast<const std::uint16_t*>(half + head_dim * kTokensPerCell)));
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    return mul(to_float(load_bytes(codes + token * head_dim + channel)), broadcast(scale[token]));
  }
};

// The scales of k4 and k3 values: [16][head_dim / 32].
struct ValueScales {
  std::int64_t per_token;
  alignas(64) float of[kTokensPerCell * kMaxHeadDim / kv::kChannelsPerScale];
  void open(const std::byte* scales, std::int64_t head_dim) {
    per_token = head_dim / kv::kChannelsPerScale;
    for (std::int64_t i = 0; i < per_token; ++i) {
      store(of + 16 * i, load_half(reinterpret_cast<const std::uint16_t*>(scales) + 16 * i));
    }
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    return broadcast(of[token * per_token + channel / kv::kChannelsPerScale]);
  }
};

// Of the 16 bytes of a token and 32 channels, the low nibbles are the first 16 channels.
struct Values4 {
  static constexpr int kBitsPerNumber = 4;
  const std::uint8_t* codes;
  std::int64_t row_bytes;
  ValueScales scales;
  void open(const std::byte* half, std::int64_t head_dim) {
    codes = reinterpret_cast<const std::uint8_t*>(half);
    row_bytes = head_dim / 2;
    scales.open(half + head_dim * kTokensPerCell / 2, head_dim);
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    const I32x16 pairs = load_bytes(codes + token * row_bytes + channel / 32 * 16);
    const I32x16 code = bit_and(shift_right(pairs, static_cast<int>(channel & 16) / 4), 15);
    return mul(to_float(add(code, -8)), scales.at(token, channel));
  }
};

struct Values3 {
  static constexpr int kBitsPerNumber = 3;
  const std::uint32_t* low;
  const std::uint16_t* high;
  std::int64_t vectors_per_token;
  ValueScales scales;
  void open(const std::byte* half, std::int64_t head_dim) {
    const kv::KvHalfLayout layout = kv::half_layout(kv::KvCode::k3, static_cast<std::int32_t>(head_dim));
    low = reinterpret_cast<const std::uint32_t*>(half);
    high = reinterpret_cast<const std::uint16_t*>(half + layout.high);
    vectors_per_token = head_dim / 16;
    scales.open(half + layout.scales, head_dim);
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    return mul(three_bit_codes(low, high, token * vectors_per_token + channel / 16),
               scales.at(token, channel));
  }
};

template <int kDistance>
struct ButterflySigns {
  alignas(64) float of[16];
  constexpr ButterflySigns() : of{} {
    for (int i = 0; i < 16; ++i) of[i] = (i & kDistance) != 0 ? -1.0f : 1.0f;
  }
};
template <int kDistance>
inline constexpr ButterflySigns<kDistance> kButterflySigns{};

// Of lanes a and b = a + kDistance: a + b, and a - b.
template <int kDistance>
KVASIR_FORCE_INLINE F32x16 butterfly(F32x16 x) {
  return fma(x, load(kButterflySigns<kDistance>.of), swap_lanes<kDistance>(x));
}

// x = H x (kv/cell.h) for a row of head_dim numbers, a multiple of 32: the fast Walsh-Hadamard transform,
// neighbours first.
static void rotate_row(float* x, std::int32_t head_dim) {
  const std::int32_t size = kv::rotation_size(head_dim);
  const F32x16 norm = broadcast(1.0f / __builtin_sqrtf(static_cast<float>(size)));
  for (std::int32_t i = 0; i < head_dim; i += 16) {
    store(x + i, butterfly<8>(butterfly<4>(butterfly<2>(butterfly<1>(load(x + i))))));
  }
  for (std::int32_t distance = 16; distance < size; distance *= 2) {
    for (std::int32_t i = 0; i < head_dim; i += 16) {
      if ((i & distance) != 0) continue;
      const F32x16 a = load(x + i), b = load(x + i + distance);
      store(x + i, add(a, b));
      store(x + i + distance, sub(a, b));
    }
  }
  for (std::int32_t i = 0; i < head_dim; i += 16) store(x + i, mul(load(x + i), norm));
}
