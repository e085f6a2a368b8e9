// Writing a cell anew in a coarser format. Included inside an ISA's namespace and target region;
// ref/kv_cell.cc is the definition, whose bytes these are.

#include "kernels/generic/kv_halves-inl.h"

inline constexpr std::int64_t kMaxHalfNumbers = std::int64_t{kMaxHeadDim} * kTokensPerCell;

// Numbers of keys are [head_dim][16], of values [16][head_dim], both in the half's own basis.
// Floats lie as they are wanted, whatever head_dim is: rows of it need not be whole vectors.
template <class Element>
static void read_floats(const std::byte* half, std::int32_t head_dim, float* numbers) {
  const auto* elements = reinterpret_cast<const Element*>(half);
  for (std::int64_t i = 0; i < std::int64_t{head_dim} * kTokensPerCell; i += 16)
    store(numbers + i, load_widened(elements + i));
}

template <class Keys>
static void read_keys(const std::byte* half, std::int32_t head_dim, float* numbers) {
  Keys keys;
  keys.open(half, head_dim);
  for (std::int64_t d = 0; d < head_dim; d += 2) {
    if (d % kv::kChannelsPerScale == 0) keys.enter(d / kv::kChannelsPerScale);
    store(numbers + d * kTokensPerCell, keys.template at<false>(d));
    store(numbers + (d + 1) * kTokensPerCell, keys.template at<true>(d + 1));
  }
}

static const std::uint16_t* scales_of(kv::KvCode code, const std::byte* half, std::int32_t head_dim) {
  return reinterpret_cast<const std::uint16_t*>(half + kv::half_layout(code, head_dim).scales);
}

// Codes of keys without their scales, or numbers where there are none.
static void read_key_codes(kv::KvCode code, const std::byte* half, std::int32_t head_dim, float* numbers) {
  switch (code) {
    case kv::KvCode::kF32:
      return read_floats<float>(half, head_dim, numbers);
    case kv::KvCode::kF16:
      return read_floats<std::uint16_t>(half, head_dim, numbers);
    case kv::KvCode::k8:
      return read_keys<Keys8>(half, head_dim, numbers);
    case kv::KvCode::k4:
      return read_keys<Keys4>(half, head_dim, numbers);
    case kv::KvCode::k4Channel:
      return read_keys<Keys4Channel>(half, head_dim, numbers);
    case kv::KvCode::k3Channel:
      return read_keys<Keys3Channel>(half, head_dim, numbers);
    case kv::KvCode::k3:
      return read_keys<Keys3>(half, head_dim, numbers);
    case kv::KvCode::kMean:
      return read_keys<KeysMean>(half, head_dim, numbers);
    case kv::KvCode::k2:  // of values only
    case kv::KvCode::kNone:
      return;
  }
}

static void read_keys(kv::KvCode code, const std::byte* half, std::int32_t head_dim, float* numbers) {
  read_key_codes(code, half, head_dim, numbers);
  if (scale_of(code) == ScaleOf::kNothing) return;
  const std::uint16_t* scales = scales_of(code, half, head_dim);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const std::int64_t group = scale_of(code) == ScaleOf::kGroup ? d / kv::kChannelsPerScale : 0;
    float* row = numbers + d * kTokensPerCell;
    store(row, mul(load(row), load_half(scales + group * kTokensPerCell)));
  }
}

template <class Values>
static void read_values(const std::byte* half, std::int32_t head_dim, float* numbers) {
  Values values;
  values.open(half, head_dim);
  for (std::int64_t t = 0; t < kTokensPerCell; ++t) {
    for (std::int64_t d = 0; d < head_dim; d += 16) store(numbers + t * head_dim + d, values.at(t, d));
  }
}

// Likewise.
static void read_value_codes(kv::KvCode code, const std::byte* half, std::int32_t head_dim, float* numbers) {
  switch (code) {
    case kv::KvCode::kF32:
      return read_floats<float>(half, head_dim, numbers);
    case kv::KvCode::k8:
      return read_values<Values8>(half, head_dim, numbers);
    case kv::KvCode::k4:
      return read_values<Values4>(half, head_dim, numbers);
    case kv::KvCode::k3:
      return read_values<Values3>(half, head_dim, numbers);
    case kv::KvCode::k2:
      return read_values<Values2>(half, head_dim, numbers);
    default:
      return read_floats<std::uint16_t>(half, head_dim, numbers);
  }
}

// The scale of channels [32 group, 32 group + 32) of 16 values, one per lane.
static F32x16 value_scales(kv::KvCode code, const std::uint16_t* scales, std::int32_t head_dim,
                           std::int64_t group) {
  if (scale_of(code) == ScaleOf::kToken) return load_half(scales);
  const std::int64_t num_groups = head_dim / kv::kChannelsPerScale;
  std::uint16_t of_tokens[kTokensPerCell];
  for (std::int64_t t = 0; t < kTokensPerCell; ++t) of_tokens[t] = scales[t * num_groups + group];
  return load_half(of_tokens);
}

static void read_values(kv::KvCode code, const std::byte* half, std::int32_t head_dim, float* numbers) {
  read_value_codes(code, half, head_dim, numbers);
  if (scale_of(code) == ScaleOf::kNothing) return;
  const std::uint16_t* scales = scales_of(code, half, head_dim);
  for (std::int64_t d = 0; d < head_dim; d += kv::kChannelsPerScale) {
    alignas(64) float of_tokens[kTokensPerCell];
    store(of_tokens, value_scales(code, scales, head_dim, d / kv::kChannelsPerScale));
    for (std::int64_t t = 0; t < kTokensPerCell; ++t) {
      float* row = numbers + t * head_dim + d;
      store(row, mul(load(row), broadcast(of_tokens[t])));
      store(row + 16, mul(load(row + 16), broadcast(of_tokens[t])));
    }
  }
}

// Keys of 16 tokens at once: the transform runs over the rows.
static void rotate_keys(float* keys, std::int32_t head_dim) {
  const std::int32_t size = kv::rotation_size(head_dim);
  for (std::int32_t distance = 1; distance < size; distance *= 2) {
    for (std::int32_t d = 0; d < head_dim; ++d) {
      if ((d & distance) != 0) continue;
      float* lower = keys + d * kTokensPerCell;
      float* upper = lower + distance * kTokensPerCell;
      const F32x16 a = load(lower), b = load(upper);
      store(lower, add(a, b));
      store(upper, sub(a, b));
    }
  }
  const F32x16 norm = broadcast(1.0f / __builtin_sqrtf(static_cast<float>(size)));
  for (std::int64_t i = 0; i < std::int64_t{head_dim} * kTokensPerCell; i += 16)
    store(keys + i, mul(load(keys + i), norm));
}

static void rotate_values(float* values, std::int32_t head_dim) {
  for (std::int64_t t = 0; t < kTokensPerCell; ++t) rotate_row(values + t * head_dim, head_dim);
}

KVASIR_FORCE_INLINE F32x16 rounded_to_half(F32x16 x) {
  std::uint16_t half[16];
  store_half(half, x);
  return load_half(half);
}
// 1 / x, and 0 for 0.
KVASIR_FORCE_INLINE F32x16 inverse_of(F32x16 x) {
  return select(equal(x, zero()), zero(), div(broadcast(1.0f), x));
}
KVASIR_FORCE_INLINE I32x16 codes_within(F32x16 x, float least, float greatest) {
  return round_to_int(min(max(x, broadcast(least)), broadcast(greatest)));
}
// The scale of symmetric codes [-2^(kBits - 1), 2^(kBits - 1)): the number of largest magnitude gets the
// code that has no counterpart.
template <int kBits>
KVASIR_FORCE_INLINE F32x16 symmetric_scale(F32x16 least, F32x16 greatest) {
  const F32x16 extreme = select(less(greatest, sub(zero(), least)), least, greatest);
  return rounded_to_half(mul(extreme, broadcast(-1.0f / (1 << (kBits - 1)))));
}
template <int kBits>
KVASIR_FORCE_INLINE I32x16 symmetric_codes(F32x16 x, F32x16 inverse) {
  constexpr int kZero = 1 << (kBits - 1);
  return add(codes_within(mul(x, inverse), -kZero, kZero - 1), kZero);
}

// Sixteen codes of kBits each that follow each other, as load_2_bits and load_3_bits read them.
template <int kBits>
static void store_bits(I32x16 codes, std::byte* p) {
  std::uint8_t of[16];
  store_bytes(of, codes);
  std::uint64_t word = 0;
  for (int i = 0; i < 16; ++i) word |= std::uint64_t{of[i]} << (kBits * i);
  __builtin_memcpy(p, &word, 2 * kBits);
}

// The codes of channels d, an even one, and d + 1.
template <int kBits>
static void store_key_codes(I32x16 even, I32x16 odd, std::int64_t d, std::byte* half) {
  if constexpr (kBits == 4) {
    store_bytes(half + d / 2 * kTokensPerCell, bit_or(even, shift_left<4>(odd)));
  } else {
    store_bits<kBits>(even, half + d * 2 * kBits);
    store_bits<kBits>(odd, half + (d + 1) * 2 * kBits);
  }
}

static void write_keys_8(const float* keys, std::int32_t head_dim, std::byte* half) {
  F32x16 largest = zero();
  for (std::int64_t d = 0; d < head_dim; ++d) largest = max(abs(load(keys + d * kTokensPerCell)), largest);
  const F32x16 scale = rounded_to_half(div(largest, broadcast(127.0f)));
  const F32x16 inverse = inverse_of(scale);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    store_bytes(half + d * kTokensPerCell,
                codes_within(mul(load(keys + d * kTokensPerCell), inverse), -127.0f, 127.0f));
  }
  store_half(reinterpret_cast<std::uint16_t*>(half + std::int64_t{head_dim} * kTokensPerCell), scale);
}

template <int kBits>
static void write_keys_rotated(const float* keys, std::int32_t head_dim, std::byte* half) {
  const kv::KvHalfLayout layout = kv::half_layout(kBits == 4 ? kv::KvCode::k4 : kv::KvCode::k3, head_dim);
  for (std::int64_t group = 0; group < head_dim / kv::kChannelsPerScale; ++group) {
    const std::int64_t first = group * kv::kChannelsPerScale;
    F32x16 least = load(keys + first * kTokensPerCell), greatest = least;
    for (std::int64_t d = first + 1; d < first + kv::kChannelsPerScale; ++d) {
      least = min(load(keys + d * kTokensPerCell), least);
      greatest = max(load(keys + d * kTokensPerCell), greatest);
    }
    const F32x16 scale = symmetric_scale<kBits>(least, greatest), inverse = inverse_of(scale);
    for (std::int64_t d = first; d < first + kv::kChannelsPerScale; d += 2) {
      const float* row = keys + d * kTokensPerCell;
      const I32x16 even = symmetric_codes<kBits>(load(row), inverse);
      const I32x16 odd = symmetric_codes<kBits>(load(row + kTokensPerCell), inverse);
      store_key_codes<kBits>(even, odd, d, half);
    }
    store_half(reinterpret_cast<std::uint16_t*>(half + layout.scales) + group * kTokensPerCell, scale);
  }
}

template <int kBits>
KVASIR_FORCE_INLINE I32x16 range_codes(F32x16 x, float low, float step) {
  return codes_within(mul(sub(x, broadcast(low)), inverse_of(broadcast(step))), 0.0f, (1 << kBits) - 1);
}

// Keys with a range per channel: lows and steps are themselves bytes of two units of the cell.
template <int kBits>
static void write_keys_by_channel(const float* keys, std::int32_t head_dim, std::byte* half) {
  const kv::KvHalfLayout layout =
      kv::half_layout(kBits == 4 ? kv::KvCode::k4Channel : kv::KvCode::k3Channel, head_dim);
  alignas(64) float least[kMaxHeadDim], greatest[kMaxHeadDim];
  F32x16 largest_low = zero(), largest_step = zero();
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const F32x16 key = load(keys + d * kTokensPerCell);
    greatest[d] = reduce_max(key);
    least[d] = -reduce_max(sub(zero(), key));
  }
  for (std::int64_t d = 0; d < head_dim; d += 16) largest_low = max(abs(load(least + d)), largest_low);
  const F32x16 low_unit =
      rounded_to_half(mul(broadcast(reduce_max(largest_low)), broadcast(kv::kUnitMargin / 127.0f)));
  const F32x16 low_inverse = inverse_of(low_unit);
  std::byte* steps = half + layout.steps;
  std::byte* lows = half + layout.lows;
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    // Rounded down: half a code is taken off first.
    const I32x16 code =
        codes_within(sub(mul(load(least + d), low_inverse), broadcast(0.5f)), -127.0f, 127.0f);
    store_bytes(lows + d, code);
    const F32x16 low = mul(to_float(code), low_unit);
    store(least + d, low);
    store(greatest + d, max(mul(sub(load(greatest + d), low), broadcast(1.0f / ((1 << kBits) - 1))), zero()));
    largest_step = max(load(greatest + d), largest_step);
  }
  const F32x16 step_unit =
      rounded_to_half(mul(broadcast(reduce_max(largest_step)), broadcast(kv::kUnitMargin / 255.0f)));
  const F32x16 step_inverse = inverse_of(step_unit);
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const I32x16 code =
        codes_within(add(mul(load(greatest + d), step_inverse), broadcast(0.5f)), 0.0f, 255.0f);
    store_bytes(steps + d, code);
    store(greatest + d, mul(to_float(code), step_unit));
  }
  for (std::int64_t d = 0; d < head_dim; d += 2) {
    const float* row = keys + d * kTokensPerCell;
    const I32x16 even = range_codes<kBits>(load(row), least[d], greatest[d]);
    const I32x16 odd = range_codes<kBits>(load(row + kTokensPerCell), least[d + 1], greatest[d + 1]);
    store_key_codes<kBits>(even, odd, d, half);
  }
  std::uint16_t units[16] = {};
  store_half_partial(units, low_unit, 2);
  store_half_partial(units, step_unit, 1);
  __builtin_memcpy(half + layout.scales, units, sizeof(units));
}

// One key for all tokens, which is the mean of theirs but for its length; each token's scale brings it as
// near to the token's as it can come.
static void write_keys_mean(const float* keys, std::int32_t head_dim, std::byte* half) {
  alignas(64) float mean[kMaxHeadDim];
  F32x16 largest = zero(), squares = zero(), dots = zero();
  for (std::int64_t d = 0; d < head_dim; ++d)
    mean[d] = reduce_add(load(keys + d * kTokensPerCell)) * (1.0f / kTokensPerCell);
  for (std::int64_t d = 0; d < head_dim; d += 16) largest = max(abs(load(mean + d)), largest);
  const F32x16 inverse = inverse_of(broadcast(reduce_max(largest) * (1.0f / 127.0f)));
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const I32x16 codes = codes_within(mul(load(mean + d), inverse), -127.0f, 127.0f);
    store_bytes(half + d, codes);
    store(mean + d, to_float(codes));
    squares = fma(load(mean + d), load(mean + d), squares);
  }
  for (std::int64_t d = 0; d < head_dim; ++d)
    dots = fma(load(keys + d * kTokensPerCell), broadcast(mean[d]), dots);
  store_half(reinterpret_cast<std::uint16_t*>(half + head_dim),
             mul(dots, inverse_of(broadcast(reduce_add(squares)))));
}

static void write_keys(kv::KvCode code, const float* keys, std::int32_t head_dim, std::byte* half) {
  switch (code) {
    case kv::KvCode::k8:
      return write_keys_8(keys, head_dim, half);
    case kv::KvCode::k4:
      return write_keys_rotated<4>(keys, head_dim, half);
    case kv::KvCode::k4Channel:
      return write_keys_by_channel<4>(keys, head_dim, half);
    case kv::KvCode::k3Channel:
      return write_keys_by_channel<3>(keys, head_dim, half);
    case kv::KvCode::k3:
      return write_keys_rotated<3>(keys, head_dim, half);
    case kv::KvCode::kMean:
      return write_keys_mean(keys, head_dim, half);
    default:  // to floats: of no use
      return;
  }
}

static void write_values_8(const float* values, std::int32_t head_dim, std::byte* half) {
  alignas(64) float scales[kTokensPerCell];
  for (std::int64_t t = 0; t < kTokensPerCell; ++t) {
    const float* row = values + t * head_dim;
    F32x16 largest = zero();
    for (std::int64_t d = 0; d < head_dim; d += 16) largest = max(abs(load(row + d)), largest);
    const F32x16 scale = rounded_to_half(div(broadcast(reduce_max(largest)), broadcast(127.0f)));
    const F32x16 inverse = inverse_of(scale);
    for (std::int64_t d = 0; d < head_dim; d += 16) {
      store_bytes(half + t * head_dim + d, codes_within(mul(load(row + d), inverse), -127.0f, 127.0f));
    }
    store_partial(scales + t, scale, 1);
  }
  store_half(reinterpret_cast<std::uint16_t*>(half + std::int64_t{head_dim} * kTokensPerCell), load(scales));
}

template <int kBits>
static void write_values_rotated(const float* values, std::int32_t head_dim, std::byte* half) {
  const kv::KvHalfLayout layout = kv::half_layout(kBits == 4 ? kv::KvCode::k4 : kv::KvCode::k3, head_dim);
  const std::int64_t groups = head_dim / kv::kChannelsPerScale;
  auto* scales = reinterpret_cast<std::uint16_t*>(half + layout.scales);
  for (std::int64_t t = 0; t < kTokensPerCell; ++t) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const float* row = values + t * head_dim + group * kv::kChannelsPerScale;
      const F32x16 a = load(row), b = load(row + 16);
      const F32x16 least = broadcast(-reduce_max(sub(zero(), min(a, b))));
      const F32x16 scale = symmetric_scale<kBits>(least, broadcast(reduce_max(max(a, b))));
      const F32x16 inverse = inverse_of(scale);
      const I32x16 low = symmetric_codes<kBits>(a, inverse), high = symmetric_codes<kBits>(b, inverse);
      const std::int64_t at = t * groups + group;
      if constexpr (kBits == 4) {
        store_bytes(half + at * 16, bit_or(low, shift_left<4>(high)));
      } else {
        store_bits<kBits>(low, half + at * 4 * kBits);
        store_bits<kBits>(high, half + at * 4 * kBits + 2 * kBits);
      }
      store_half_partial(scales + at, scale, 1);
    }
  }
}

static void write_values_2(const float* values, std::int32_t head_dim, std::byte* half) {
  const std::int64_t groups = head_dim / kv::kChannelsPerScale;
  auto* scales = reinterpret_cast<std::uint16_t*>(half + kv::half_layout(kv::KvCode::k2, head_dim).scales);
  for (std::int64_t at = 0; at < kTokensPerCell * groups; ++at) {
    const F32x16 a = load(values + at * kv::kChannelsPerScale);
    const F32x16 b = load(values + at * kv::kChannelsPerScale + 16);
    const F32x16 largest = broadcast(reduce_max(max(abs(a), abs(b))));
    const F32x16 scale = rounded_to_half(mul(largest, broadcast(kv::kTwoBitScale)));
    const F32x16 inverse = inverse_of(scale);
    store_bits<2>(codes_within(add(mul(a, inverse), broadcast(1.5f)), 0.0f, 3.0f), half + 8 * at);
    store_bits<2>(codes_within(add(mul(b, inverse), broadcast(1.5f)), 0.0f, 3.0f), half + 8 * at + 4);
    store_half_partial(scales + at, scale, 1);
  }
}

static void write_values(kv::KvCode code, const float* values, std::int32_t head_dim, std::byte* half) {
  switch (code) {
    case kv::KvCode::k8:
      return write_values_8(values, head_dim, half);
    case kv::KvCode::k4:
      return write_values_rotated<4>(values, head_dim, half);
    case kv::KvCode::k3:
      return write_values_rotated<3>(values, head_dim, half);
    case kv::KvCode::k2:
      return write_values_2(values, head_dim, half);
    default:
      return;
  }
}

void convert_cell(const KvConvertArgs& args) {
  const kv::KvCodes from = kv::codes_of(args.from), to = kv::codes_of(args.to);
  const std::byte* old_values = args.source + kv::key_bytes(args.from, args.head_dim);
  std::byte* new_values = args.target + kv::key_bytes(args.to, args.head_dim);
  alignas(64) float numbers[kMaxHalfNumbers];
  if (from.keys == to.keys) {
    __builtin_memcpy(args.target, args.source,
                     static_cast<std::size_t>(kv::half_layout(to.keys, args.head_dim).bytes));
  } else {
    read_keys(from.keys, args.source, args.head_dim, numbers);
    if (kv::is_rotated(from.keys) != kv::is_rotated(to.keys)) rotate_keys(numbers, args.head_dim);
    write_keys(to.keys, numbers, args.head_dim, args.target);
  }
  if (to.values == kv::KvCode::kNone) return;
  if (from.values == to.values) {
    __builtin_memcpy(new_values, old_values,
                     static_cast<std::size_t>(kv::half_layout(to.values, args.head_dim).bytes));
  } else {
    read_values(from.values, old_values, args.head_dim, numbers);
    if (kv::is_rotated(from.values) != kv::is_rotated(to.values)) rotate_values(numbers, args.head_dim);
    write_values(to.values, numbers, args.head_dim, new_values);
  }
}
