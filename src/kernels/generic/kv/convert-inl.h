// Writing a cell anew in a coarser format. Included inside an ISA's namespace and target region;
// ref/kv_cell.cc is the definition, whose bytes these are.

#include "kernels/generic/kv/components-inl.h"

inline constexpr std::int64_t kMaxHalfNumbers = std::int64_t{kMaxHeadDim} * kTokensPerCell;

// Numbers of keys are [head_dim][16], of values [16][head_dim], both in the half's own basis.
// Floats lie as they are wanted, whatever head_dim is: rows of it need not be whole vectors.
template <class Element>
static void read_floats(const std::byte* half, std::int32_t head_dim, float* numbers) {
  const auto* elements = reinterpret_cast<const Element*>(half);
  for (std::int64_t i = 0; i < std::int64_t{head_dim} * kTokensPerCell; i += 16)
    store(numbers + i, load_widened(elements + i));
}

static void read_floats(kv::KvCode code, const std::byte* half, std::int32_t head_dim, float* numbers) {
  if (code == kv::KvCode::kF32) return read_floats<float>(half, head_dim, numbers);
  read_floats<std::uint16_t>(half, head_dim, numbers);
}

static const std::uint16_t* scales_of(kv::KvCode code, const std::byte* half, std::int32_t head_dim) {
  return reinterpret_cast<const std::uint16_t*>(half + kv::half_layout(code, head_dim).scales);
}

static void read_keys(kv::KvCode code, const std::byte* half, std::int32_t head_dim, float* numbers) {
  if (is_float(code)) return read_floats(code, half, head_dim, numbers);
  alignas(64) std::int16_t i16[kMaxHalfNumbers];
  read_key_i16(code, half, head_dim, i16);
  const std::uint16_t* scales = scales_of(code, half, head_dim);
  const F32x16 low_unit = load_low_unit(scales);
  const auto* ranges = reinterpret_cast<const kv::ChannelRange*>(half +
                                                                 kv::half_layout(code, head_dim).ranges);
  for (std::int64_t d = 0; d < head_dim; d += 2) {
    const F32x16 scale = load_scales(code, scales, d / kv::kChannelsPerScale);
    const I16x32 pair = load_i16x32(i16 + d / 2 * kI16PerVector);
    const F32x16 even = to_float(even_i16(pair)), odd = to_float(odd_i16(pair));
    if (kv::has_range_per_channel(code)) {
      store(numbers + d * kTokensPerCell, fma(even, scale, mul(broadcast(ranges[d].low), low_unit)));
      store(numbers + (d + 1) * kTokensPerCell, fma(odd, scale, mul(broadcast(ranges[d + 1].low), low_unit)));
    } else {
      store(numbers + d * kTokensPerCell, mul(even, scale));
      store(numbers + (d + 1) * kTokensPerCell, mul(odd, scale));
    }
  }
}

static void read_values(kv::KvCode code, const std::byte* half, std::int32_t head_dim, float* numbers) {
  if (is_float(code)) return read_floats(code, half, head_dim, numbers);
  alignas(64) std::int16_t i16[kMaxHalfNumbers];
  read_value_i16(code, half, head_dim, i16);
  for (std::int64_t v = 0; v < head_dim / 2; ++v) {
    const std::int64_t group = v / kVectorsPerGroup, token = v % kVectorsPerGroup / 2 * 2;
    float* target = numbers + token * head_dim + group * kv::kChannelsPerScale + v % 2 * 16;
    alignas(64) float scales[kTokensPerCell];
    store(scales, load_scales(code, scales_of(code, half, head_dim), group));
    const I16x32 pair = load_i16x32(i16 + v * kI16PerVector);
    store(target, mul(to_float(even_i16(pair)), broadcast(scales[token])));
    store(target + head_dim, mul(to_float(odd_i16(pair)), broadcast(scales[token + 1])));
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
  constexpr int kGreatest = (1 << (kBits - 1)) - 1;
  const F32x16 scaled = mul(x, inverse);
  if constexpr (kBits == 2)
    return codes_within(mul(sub(scaled, broadcast(1.0f)), broadcast(0.5f)), -2.0f, 1.0f);
  return codes_within(scaled, kBits == 8 ? -kGreatest : -kGreatest - 1, kGreatest);
}

// Keys [32][16] of a group.
template <int kBits>
static void write_key_group(const float* keys, F32x16 inverse, std::byte* group) {
  alignas(64) std::int16_t i16[kNumbersPerGroup];
  for (std::int64_t v = 0; v < kVectorsPerGroup; ++v) {
    const float* rows = keys + 2 * v * kTokensPerCell;
    store_i16x32(i16 + v * kI16PerVector,
                 join_i16(symmetric_codes<kBits>(load(rows), inverse),
                          symmetric_codes<kBits>(load(rows + kTokensPerCell), inverse)));
  }
  pack_group<kBits>(i16, group);
}

static void write_keys_8(const float* keys, std::int32_t head_dim, std::byte* half) {
  F32x16 largest = zero();
  for (std::int64_t d = 0; d < head_dim; ++d) largest = max(abs(load(keys + d * kTokensPerCell)), largest);
  const F32x16 scale = rounded_to_half(div(largest, broadcast(127.0f)));
  const F32x16 inverse = inverse_of(scale);
  for (std::int64_t group = 0; group < head_dim / kv::kChannelsPerScale; ++group) {
    write_key_group<8>(keys + group * kNumbersPerGroup, inverse, half + group * 8 * 64);
  }
  store_half(reinterpret_cast<std::uint16_t*>(half + std::int64_t{head_dim} * kTokensPerCell), scale);
}

template <int kBits>
static void write_keys_rotated(const float* keys, std::int32_t head_dim, std::byte* half) {
  const kv::KvHalfLayout layout = kv::half_layout(kBits == 4 ? kv::KvCode::k4 : kv::KvCode::k3, head_dim);
  for (std::int64_t group = 0; group < head_dim / kv::kChannelsPerScale; ++group) {
    const float* rows = keys + group * kNumbersPerGroup;
    F32x16 least = load(rows), greatest = least;
    for (std::int64_t d = 1; d < kv::kChannelsPerScale; ++d) {
      least = min(load(rows + d * kTokensPerCell), least);
      greatest = max(load(rows + d * kTokensPerCell), greatest);
    }
    const F32x16 scale = symmetric_scale<kBits>(least, greatest);
    write_key_group<kBits>(rows, inverse_of(scale), half + group * kBits * 64);
    store_half(reinterpret_cast<std::uint16_t*>(half + layout.scales) + group * kTokensPerCell, scale);
  }
}

// Keys with a range per channel: lows and steps are themselves bytes of two units of the cell.
template <int kBits>
static void write_ranges(const float* keys, std::int32_t head_dim, float* lows, float* steps,
                         std::byte* half) {
  const kv::KvHalfLayout layout = kv::half_layout(kBits == 4 ? kv::KvCode::k4Channel : kv::KvCode::k3Channel,
                                                  head_dim);
  F32x16 largest_low = zero(), largest_step = zero();
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const F32x16 key = load(keys + d * kTokensPerCell);
    steps[d] = reduce_max(key);
    lows[d] = -reduce_max(sub(zero(), key));
  }
  for (std::int64_t d = 0; d < head_dim; d += 16) largest_low = max(abs(load(lows + d)), largest_low);
  const F32x16 low_unit = rounded_to_half(
      mul(broadcast(reduce_max(largest_low)), broadcast(kv::kUnitMargin / 127.0f)));
  const F32x16 low_inverse = inverse_of(low_unit);
  std::uint8_t low_codes[kMaxHeadDim], step_codes[kMaxHeadDim];
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    // Rounded down: half a code is taken off first.
    const I32x16 code = codes_within(sub(mul(load(lows + d), low_inverse), broadcast(0.5f)), -127.0f, 127.0f);
    store_bytes(low_codes + d, code);
    const F32x16 low = mul(to_float(code), low_unit);
    store(lows + d, low);
    store(steps + d, max(mul(sub(load(steps + d), low), broadcast(1.0f / ((1 << kBits) - 1))), zero()));
    largest_step = max(load(steps + d), largest_step);
  }
  const F32x16 step_unit = rounded_to_half(
      mul(broadcast(reduce_max(largest_step)), broadcast(kv::kUnitMargin / 255.0f)));
  const F32x16 step_inverse = inverse_of(step_unit);
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const I32x16 code = codes_within(add(mul(load(steps + d), step_inverse), broadcast(0.5f)), 0.0f, 255.0f);
    store_bytes(step_codes + d, code);
    store(steps + d, mul(to_float(code), step_unit));
  }
  auto* ranges = reinterpret_cast<kv::ChannelRange*>(half + layout.ranges);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    ranges[d] = {step_codes[d], static_cast<std::int8_t>(low_codes[d])};
  }
  std::uint16_t units[16] = {};
  store_half_partial(units, low_unit, 2);
  store_half_partial(units, step_unit, 1);
  __builtin_memcpy(half + layout.scales, units, sizeof(units));
}

template <int kBits>
static void write_keys_by_channel(const float* keys, std::int32_t head_dim, std::byte* half) {
  alignas(64) float lows[kMaxHeadDim], steps[kMaxHeadDim];
  write_ranges<kBits>(keys, head_dim, lows, steps, half);
  const auto code_of = [&](std::int64_t d) {
    const F32x16 above = sub(load(keys + d * kTokensPerCell), broadcast(lows[d]));
    return codes_within(mul(above, inverse_of(broadcast(steps[d]))), 0.0f, (1 << kBits) - 1);
  };
  for (std::int64_t group = 0; group < head_dim / kv::kChannelsPerScale; ++group) {
    alignas(64) std::int16_t i16[kNumbersPerGroup];
    for (std::int64_t v = 0; v < kVectorsPerGroup; ++v) {
      const std::int64_t d = group * kv::kChannelsPerScale + 2 * v;
      store_i16x32(i16 + v * kI16PerVector, join_i16(code_of(d), code_of(d + 1)));
    }
    pack_group<kBits>(i16, half + group * kBits * 64);
  }
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
    default:  // to floats: of no use
      return;
  }
}

// Values [16] rows of `stride` numbers, of which those of a group come first; the inverse scales of 16
// tokens.
template <int kBits>
static void write_value_group(const float* values, std::int64_t stride, const float* inverses,
                              std::byte* group) {
  alignas(64) std::int16_t i16[kNumbersPerGroup];
  for (std::int64_t v = 0; v < kVectorsPerGroup; ++v) {
    const std::int64_t token = v / 2 * 2;
    const float* row = values + token * stride + v % 2 * 16;
    const I32x16 even = symmetric_codes<kBits>(load(row), broadcast(inverses[token]));
    const I32x16 odd = symmetric_codes<kBits>(load(row + stride), broadcast(inverses[token + 1]));
    store_i16x32(i16 + v * kI16PerVector, join_i16(even, odd));
  }
  pack_group<kBits>(i16, group);
}

static void write_values_8(const float* values, std::int32_t head_dim, std::byte* half) {
  alignas(64) float inverses[kTokensPerCell], scales[kTokensPerCell];
  for (std::int64_t t = 0; t < kTokensPerCell; ++t) {
    const float* row = values + t * head_dim;
    F32x16 largest = zero();
    for (std::int64_t d = 0; d < head_dim; d += 16) largest = max(abs(load(row + d)), largest);
    const F32x16 scale = rounded_to_half(div(broadcast(reduce_max(largest)), broadcast(127.0f)));
    store_partial(scales + t, scale, 1);
    store_partial(inverses + t, inverse_of(scale), 1);
  }
  for (std::int64_t group = 0; group < head_dim / kv::kChannelsPerScale; ++group) {
    write_value_group<8>(values + group * kv::kChannelsPerScale, head_dim, inverses, half + group * 8 * 64);
  }
  store_half(reinterpret_cast<std::uint16_t*>(half + std::int64_t{head_dim} * kTokensPerCell), load(scales));
}

// The scale of 32 channels of a value.
template <int kBits>
static F32x16 value_scale(const float* value) {
  const F32x16 a = load(value), b = load(value + 16);
  if constexpr (kBits == 2) {
    const F32x16 largest = broadcast(reduce_max(max(abs(a), abs(b))));
    return rounded_to_half(mul(largest, broadcast(kv::kTwoBitScale)));
  }
  const F32x16 least = broadcast(-reduce_max(sub(zero(), min(a, b))));
  return symmetric_scale<kBits>(least, broadcast(reduce_max(max(a, b))));
}

template <int kBits>
static void write_values_rotated(kv::KvCode code, const float* values, std::int32_t head_dim,
                                 std::byte* half) {
  auto* scales = reinterpret_cast<std::uint16_t*>(half + kv::half_layout(code, head_dim).scales);
  for (std::int64_t group = 0; group < head_dim / kv::kChannelsPerScale; ++group) {
    const float* of_group = values + group * kv::kChannelsPerScale;
    alignas(64) float inverses[kTokensPerCell];
    for (std::int64_t t = 0; t < kTokensPerCell; ++t) {
      const F32x16 scale = value_scale<kBits>(of_group + t * head_dim);
      store_half_partial(scales + group * kTokensPerCell + t, scale, 1);
      store_partial(inverses + t, inverse_of(scale), 1);
    }
    write_value_group<kBits>(of_group, head_dim, inverses, half + group * kBits * 64);
  }
}

static void write_values(kv::KvCode code, const float* values, std::int32_t head_dim, std::byte* half) {
  switch (code) {
    case kv::KvCode::k8:
      return write_values_8(values, head_dim, half);
    case kv::KvCode::k4:
      return write_values_rotated<4>(code, values, head_dim, half);
    case kv::KvCode::k3:
      return write_values_rotated<3>(code, values, head_dim, half);
    case kv::KvCode::k2:
      return write_values_rotated<2>(code, values, head_dim, half);
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
    if (to.keys == kv::KvCode::kComponents) {
      write_keys_components(*args.basis, args.block, numbers, args.head_dim, args.target);
    } else {
      write_keys(to.keys, numbers, args.head_dim, args.target);
    }
  }
  if (from.values == to.values) {
    __builtin_memcpy(new_values, old_values,
                     static_cast<std::size_t>(kv::half_layout(to.values, args.head_dim).bytes));
  } else {
    read_values(from.values, old_values, args.head_dim, numbers);
    if (kv::is_rotated(from.values) != kv::is_rotated(to.values)) rotate_values(numbers, args.head_dim);
    write_values(to.values, numbers, args.head_dim, new_values);
  }
}
