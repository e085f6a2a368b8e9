// Reading keys and values of every code (kv/cells/cell.h), and the rotation of rows. Included inside an ISA's
// namespace and target region.

#include "kernels/generic/kv/codes-inl.h"

KVASIR_FORCE_INLINE F32x16 load_widened(const float* p) { return load(p); }
KVASIR_FORCE_INLINE F32x16 load_widened(const std::uint16_t* p) { return load_half(p); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const float* p, int n) { return load_partial(p, n); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const std::uint16_t* p, int n) {
  return load_half_partial(p, n);
}

constexpr bool is_float(kv::KvCode code) { return code <= kv::KvCode::kF16; }

// The scales of the 16-bit integers of 16 tokens (codes-inl.h) in a group of 32 channels: one per token, or
// with a range per channel the unit of the steps.
KVASIR_FORCE_INLINE F32x16 load_scales(kv::KvCode code, const std::uint16_t* scales, std::int64_t group) {
  if (kv::is_rotated(code)) return load_half(scales + group * kTokensPerCell);
  const F32x16 of_tokens = load_half(scales);
  return kv::has_range_per_channel(code) ? broadcast_first(of_tokens) : of_tokens;
}
// The unit of the lows.
KVASIR_FORCE_INLINE F32x16 load_low_unit(const std::uint16_t* scales) {
  return broadcast_first(load_half_partial(scales + 1, 1));
}

// A reader of float keys gives those of 16 tokens, one per lane, for a channel. kBytesPerChannel paces the
// prefetch of another cell; 0: none.
template <class Element, int kPrefetchedBytes>
struct KeysFloat {
  static constexpr int kBytesPerChannel = kPrefetchedBytes;
  const Element* numbers;
  void open(const std::byte* half) { numbers = reinterpret_cast<const Element*>(half); }
  KVASIR_FORCE_INLINE F32x16 at(std::int64_t channel) const {
    return load_widened(numbers + channel * kTokensPerCell);
  }
};
using KeysF32 = KeysFloat<float, 0>;  // copies in the caches, or a cache that is for tests
using KeysF16 = KeysFloat<std::uint16_t, 32>;

// A reader of float values gives, after open(), 16 channels of a token, from a channel that is a multiple of
// 16. kBitsPerNumber paces the prefetch of another cell; 0: none.
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

template <int kDistance>
struct ButterflySigns {
  alignas(64) float of[16];
  constexpr ButterflySigns() : of{} {
    for (int i = 0; i < 16; ++i) of[i] = (i & kDistance) != 0 ? -1.0f : 1.0f;
  }
};
template <int kDistance>
inline constexpr ButterflySigns<kDistance> kButterflySigns{};

// Lanes a and b = a + kDistance become a + b and a - b.
template <int kDistance>
KVASIR_FORCE_INLINE F32x16 butterfly(F32x16 x) {
  return fma(x, load(kButterflySigns<kDistance>.of), swap_lanes<kDistance>(x));
}

// x = H x (kv/cells/cell.h) for a row of head_dim numbers, a multiple of 32: the fast Walsh-Hadamard transform,
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
