// Reading keys and values of every code (kv/cell.h) as float32, and the rotation of rows. Included inside an
// ISA's namespace and target region.
//
// A reader gives numbers without the scale that they share with others: attention multiplies a whole sum, or
// a token's weight, by it once.

KVASIR_FORCE_INLINE F32x16 load_widened(const float* p) { return load(p); }
KVASIR_FORCE_INLINE F32x16 load_widened(const std::uint16_t* p) { return load_half(p); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const float* p, int n) { return load_partial(p, n); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const std::uint16_t* p, int n) {
  return load_half_partial(p, n);
}

// What numbers share a scale.
enum class ScaleOf : std::uint8_t {
  kNothing,  // there is none
  kToken,    // all of a token's
  kGroup,    // 32 channels of a token
};
constexpr ScaleOf scale_of(kv::KvCode code) {
  if (code == kv::KvCode::k8 || code == kv::KvCode::kMean) return ScaleOf::kToken;
  return kv::is_rotated(code) ? ScaleOf::kGroup : ScaleOf::kNothing;
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
  void open(const std::byte* half, std::int64_t) { codes = reinterpret_cast<const std::int8_t*>(half); }
  KVASIR_FORCE_INLINE void enter(std::int64_t) {}
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return to_float(load_bytes(codes + channel * kTokensPerCell));
  }
};

// The same codes for every token.
struct KeysMean {
  static constexpr int kBytesPerChannel = 1;
  const std::int8_t* codes;
  void open(const std::byte* half, std::int64_t) { codes = reinterpret_cast<const std::int8_t*>(half); }
  KVASIR_FORCE_INLINE void enter(std::int64_t) {}
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return broadcast(static_cast<float>(codes[channel]));
  }
};

// Channels 2 i and 2 i + 1 share the bytes of row i.
template <int kTwiceZero>
struct Keys4Bits {
  static constexpr int kBytesPerChannel = 8;
  const std::uint8_t* codes;
  void open(const std::byte* half, std::int64_t) { codes = reinterpret_cast<const std::uint8_t*>(half); }
  KVASIR_FORCE_INLINE void enter(std::int64_t) {}
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    const I32x16 pairs = load_bytes(codes + channel / 2 * kTokensPerCell);
    return numbers_of<4, kTwiceZero>(kOdd ? shift_right<4>(pairs) : pairs);
  }
};
template <int kTwiceZero>
struct Keys3Bits {
  static constexpr int kBytesPerChannel = 6;
  const std::byte* codes;
  void open(const std::byte* half, std::int64_t) { codes = half; }
  KVASIR_FORCE_INLINE void enter(std::int64_t) {}
  template <bool kOdd>
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return numbers_of<3, kTwiceZero>(load_3_bits(codes + channel * kBytesPerChannel));
  }
};
using Keys4 = Keys4Bits<16>;
using Keys3 = Keys3Bits<8>;

// With a range per channel: fma(code, step, low).
template <class Codes, kv::KvCode kCode>
struct KeysByChannel {
  static constexpr int kBytesPerChannel = Codes::kBytesPerChannel;
  Codes codes;
  const std::uint8_t* steps;
  const std::int8_t* lows;
  F32x16 step_unit, low_unit;
  alignas(64) float step[kv::kChannelsPerScale];  // of the group
  alignas(64) float low[kv::kChannelsPerScale];
  void open(const std::byte* half, std::int64_t head_dim) {
    const kv::KvHalfLayout layout = kv::half_layout(kCode, static_cast<std::int32_t>(head_dim));
    codes.open(half, head_dim);
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
    return fma(codes.template at<kOdd>(channel), broadcast(step[i]), broadcast(low[i]));
  }
};
using Keys4Channel = KeysByChannel<Keys4Bits<0>, kv::KvCode::k4Channel>;
using Keys3Channel = KeysByChannel<Keys3Bits<0>, kv::KvCode::k3Channel>;

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
  void open(const std::byte* half, std::int64_t of_head) {
    codes = reinterpret_cast<const std::int8_t*>(half);
    head_dim = of_head;
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    return to_float(load_bytes(codes + token * head_dim + channel));
  }
};

// Of the 16 bytes of a token and 32 channels, the low nibbles are the first 16 channels.
struct Values4 {
  static constexpr int kBitsPerNumber = 4;
  const std::uint8_t* codes;
  std::int64_t row_bytes;
  void open(const std::byte* half, std::int64_t head_dim) {
    codes = reinterpret_cast<const std::uint8_t*>(half);
    row_bytes = head_dim / 2;
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    const I32x16 pairs = load_bytes(codes + token * row_bytes + channel / 32 * 16);
    return numbers_of<4, 16>((channel & 16) != 0 ? shift_right<4>(pairs) : pairs);
  }
};

// Two or three bits each.
template <int kBits, int kTwiceZero>
struct ValuesBits {
  static constexpr int kBitsPerNumber = kBits;
  const std::byte* codes;
  std::int64_t head_dim;
  void open(const std::byte* half, std::int64_t of_head) {
    codes = half;
    head_dim = of_head;
  }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t token, std::int64_t channel) const {
    const std::byte* p = codes + (token * head_dim + channel) * kBits / 8;
    if constexpr (kBits == 2) return numbers_of<2, kTwiceZero>(load_2_bits(p));
    return numbers_of<3, kTwiceZero>(load_3_bits(p));
  }
};
using Values3 = ValuesBits<3, 8>;
using Values2 = ValuesBits<2, 3>;

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
