#include "kernels/ref/kv_cell.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "kernels/ref/kernels.h"
#include "kernels/ref/key_components.h"

namespace kvasir::kernels::ref {
namespace {

using kv::half_layout;
using kv::kChannelsPerScale;
using kv::KvCode;

template <typename T>
T load(const std::byte* bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <typename T>
void store(std::byte* bytes, std::int64_t index, T value) {
  std::memcpy(bytes + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}
float load_half(const std::byte* bytes, std::int64_t index) {
  return half_to_float(load<std::uint16_t>(bytes, index));
}
void store_half(std::byte* bytes, std::int64_t index, float value) {
  store(bytes, index, float_to_half(value));
}
float rounded_to_half(float x) { return half_to_float(float_to_half(x)); }
float inverse_of(float x) { return x == 0.0f ? 0.0f : 1.0f / x; }

int code_within(float x, float least, float greatest) {
  return static_cast<int>(std::nearbyint(std::fmin(std::fmax(x, least), greatest)));
}

// Bits of a code.
int bits_of(KvCode code) {
  switch (code) {
    case KvCode::k12:
      return 12;
    case KvCode::k8:
      return 8;
    case KvCode::k2:
      return 2;
    case KvCode::k3:
    case KvCode::k3Channel:
      return 3;
    default:
      return 4;
  }
}

// Where a number of a half has bit `bit` of its code.
kv::KvCodePlace place_of(KvCode code, bool of_keys, std::int32_t token, std::int32_t channel, int bit) {
  const std::int32_t channels = code == KvCode::k12 && !of_keys ? 2 * kChannelsPerScale : kChannelsPerScale;
  const std::int32_t group = channel / channels * (channels / kChannelsPerScale),
                     in_group = channel % channels;
  const std::int32_t vector = of_keys ? in_group / 2 : token / 2 * (channels / 16) + in_group / 16;
  const std::int32_t index = of_keys ? 2 * token + channel % 2 : in_group % 16 * 2 + token % 2;
  kv::KvCodePlace place = kv::code_place(bits_of(code), group, vector, index);
  if (bits_of(code) == 3 && vector == 15) {
    place.byte += 64 * bit;
  } else if (bits_of(code) == 12 && vector % 4 == 3) {
    place.byte += bit / 4 * 64;
    place.bit = bit % 4;
  } else {
    place.bit += bit;
  }
  return place;
}

// The number in the bits, without a sign.
int load_code(KvCode code, const std::byte* half, bool of_keys, std::int32_t token, std::int32_t channel) {
  int value = 0;
  for (int bit = 0; bit < bits_of(code); ++bit) {
    const kv::KvCodePlace at = place_of(code, of_keys, token, channel, bit);
    value |= (load<std::uint16_t>(half + at.byte, 0) >> at.bit & 1) << bit;
  }
  return value;
}
int load_signed_code(KvCode code, const std::byte* half, bool of_keys, std::int32_t token,
                     std::int32_t channel) {
  const int value = load_code(code, half, of_keys, token, channel);
  return value >> (bits_of(code) - 1) == 0 ? value : value - (1 << bits_of(code));
}
void store_code(KvCode code, std::byte* half, bool of_keys, std::int32_t token, std::int32_t channel,
                int value) {
  for (int bit = 0; bit < bits_of(code); ++bit) {
    const kv::KvCodePlace at = place_of(code, of_keys, token, channel, bit);
    const int others = load<std::uint16_t>(half + at.byte, 0) & ~(1 << at.bit);
    store(half + at.byte, 0, static_cast<std::uint16_t>(others | (value >> bit & 1) << at.bit));
  }
}

// The numbers of a half by token, in its own basis.
using Rows = std::vector<std::vector<float>>;

Rows rows_of(std::int32_t head_dim) { return Rows(kTokensPerCell, std::vector<float>(head_dim)); }

float largest_magnitude(const std::vector<float>& row) {
  float largest = 0.0f;
  for (float x : row) largest = std::fmax(largest, std::fabs(x));
  return largest;
}

// Scale of codes [-2^(bits - 1), 2^(bits - 1)) for channels [begin, begin + 32) of a row.
float symmetric_scale(const std::vector<float>& row, std::int32_t begin, int bits) {
  const auto [least, greatest] = std::minmax_element(row.begin() + begin,
                                                     row.begin() + begin + kChannelsPerScale);
  const float extreme = *greatest < -*least ? *least : *greatest;
  return rounded_to_half(extreme * (-1.0f / static_cast<float>(1 << (bits - 1))));
}
int symmetric_code(float x, float scale, int bits) {
  const int zero = 1 << (bits - 1);
  return code_within(x * inverse_of(scale), static_cast<float>(-zero), static_cast<float>(zero - 1));
}

// The scale of a token's channel lies behind the codes: [group][token].
std::int64_t scale_index(std::int32_t token, std::int32_t channel) {
  return std::int64_t{channel / kChannelsPerScale} * kTokensPerCell + token;
}

void write_8(const Rows& rows, bool of_keys, std::int32_t head_dim, std::byte* half) {
  for (std::int32_t t = 0; t < kTokensPerCell; ++t) {
    const float scale = rounded_to_half(largest_magnitude(rows[t]) / 127.0f);
    store_half(half + half_layout(KvCode::k8, head_dim).scales, t, scale);
    for (std::int32_t d = 0; d < head_dim; ++d) {
      store_code(KvCode::k8, half, of_keys, t, d,
                 code_within(rows[t][d] * inverse_of(scale), -127.0f, 127.0f));
    }
  }
}

void write_values_2(const Rows& rows, std::int32_t head_dim, std::byte* half) {
  const kv::KvHalfLayout layout = half_layout(KvCode::k2, head_dim);
  for (std::int32_t t = 0; t < kTokensPerCell; ++t) {
    for (std::int32_t d = 0; d < head_dim; ++d) {
      const std::int32_t begin = d / kChannelsPerScale * kChannelsPerScale;
      const std::vector<float> group(rows[t].begin() + begin, rows[t].begin() + begin + kChannelsPerScale);
      const float scale = rounded_to_half(largest_magnitude(group) * kv::kTwoBitScale);
      store_half(half + layout.scales, scale_index(t, d), scale);
      const int code = code_within((rows[t][d] * inverse_of(scale) - 1.0f) * 0.5f, -2.0f, 1.0f);
      store_code(KvCode::k2, half, false, t, d, code);
    }
  }
}

void write_rotated(const Rows& rows, bool of_keys, KvCode code, std::int32_t head_dim, std::byte* half) {
  const kv::KvHalfLayout layout = half_layout(code, head_dim);
  for (std::int32_t t = 0; t < kTokensPerCell; ++t) {
    for (std::int32_t d = 0; d < head_dim; ++d) {
      const float scale = symmetric_scale(rows[t], d / kChannelsPerScale * kChannelsPerScale, bits_of(code));
      store_half(half + layout.scales, scale_index(t, d), scale);
      store_code(code, half, of_keys, t, d, symmetric_code(rows[t][d], scale, bits_of(code)));
    }
  }
}

void write_by_channel(KvCode code_of_keys, const Rows& rows, std::int32_t head_dim, std::byte* half) {
  const kv::KvHalfLayout layout = half_layout(code_of_keys, head_dim);
  const float greatest_code = code_of_keys == KvCode::k4Channel ? 15.0f : 7.0f;
  std::memset(half, 0, static_cast<std::size_t>(layout.bytes));
  std::vector<float> least(head_dim), greatest(head_dim);
  std::vector<kv::ChannelRange> ranges(head_dim);
  for (std::int32_t d = 0; d < head_dim; ++d) {
    least[d] = greatest[d] = rows[0][d];
    for (const auto& row : rows) {
      least[d] = std::fmin(least[d], row[d]);
      greatest[d] = std::fmax(greatest[d], row[d]);
    }
  }
  const float low_unit = rounded_to_half(largest_magnitude(least) * (kv::kUnitMargin / 127.0f));
  std::vector<float> low(head_dim), step(head_dim);
  for (std::int32_t d = 0; d < head_dim; ++d) {
    const int code = code_within(least[d] * inverse_of(low_unit) - 0.5f, -127.0f, 127.0f);
    ranges[d].low = static_cast<std::int8_t>(code);
    low[d] = static_cast<float>(code) * low_unit;
    step[d] = std::fmax((greatest[d] - low[d]) * (1.0f / greatest_code), 0.0f);
  }
  const float step_unit = rounded_to_half(largest_magnitude(step) * (kv::kUnitMargin / 255.0f));
  for (std::int32_t d = 0; d < head_dim; ++d) {
    const int code = code_within(step[d] * inverse_of(step_unit) + 0.5f, 0.0f, 255.0f);
    ranges[d].step = static_cast<std::uint8_t>(code);
    const float inverse = inverse_of(static_cast<float>(code) * step_unit);
    for (std::int32_t t = 0; t < kTokensPerCell; ++t) {
      const int key = code_within((rows[t][d] - low[d]) * inverse, 0.0f, greatest_code);
      store_code(code_of_keys, half, true, t, d, key);
    }
  }
  std::memcpy(half + layout.ranges, ranges.data(), ranges.size() * sizeof(kv::ChannelRange));
  store_half(half + layout.scales, 0, step_unit);
  store_half(half + layout.scales, 1, low_unit);
}

void write_half(KvCode code, const Rows& rows, bool of_keys, std::int32_t head_dim, std::byte* half) {
  if (code == KvCode::k8) return write_8(rows, of_keys, head_dim, half);
  if (kv::has_range_per_channel(code)) return write_by_channel(code, rows, head_dim, half);
  if (code == KvCode::k2) return write_values_2(rows, head_dim, half);
  write_rotated(rows, of_keys, code, head_dim, half);
}

void convert_half(KvCode from, KvCode to, bool of_keys, std::int32_t head_dim, const std::byte* source,
                  std::byte* target) {
  if (from == to) {
    std::memcpy(target, source, static_cast<std::size_t>(half_layout(to, head_dim).bytes));
    return;
  }
  Rows rows = rows_of(head_dim);
  for (std::int32_t t = 0; t < kTokensPerCell; ++t) {
    for (std::int32_t d = 0; d < head_dim; ++d) {
      rows[t][d] = (of_keys ? key_number : value_number)(from, source, head_dim, t, d);
    }
    if (kv::is_rotated(from) != kv::is_rotated(to)) rotate(rows[t]);
  }
  write_half(to, rows, of_keys, head_dim, target);
}

// A number of a code that is neither float nor has a range per channel.
float scaled_number(KvCode code, const std::byte* half, bool of_keys, std::int32_t head_dim,
                    std::int32_t token, std::int32_t channel) {
  const int value = load_signed_code(code, half, of_keys, token, channel);
  const std::int64_t scale = kv::is_rotated(code) ? scale_index(token, channel) : token;
  return static_cast<float>(code == KvCode::k2 ? 2 * value + 1 : value) *
         load_half(half + half_layout(code, head_dim).scales, scale);
}

}  // namespace

float key_number(KvCode code, const std::byte* half, std::int32_t head_dim, std::int32_t token,
                 std::int32_t channel) {
  const std::int64_t at = std::int64_t{channel} * kTokensPerCell + token;
  if (code == KvCode::kF32) return load<float>(half, at);
  if (code == KvCode::kF16) return load_half(half, at);
  if (!kv::has_range_per_channel(code)) return scaled_number(code, half, true, head_dim, token, channel);
  const kv::KvHalfLayout layout = half_layout(code, head_dim);
  const auto range = load<kv::ChannelRange>(half + layout.ranges, channel);
  const int steps = load_code(code, half, true, token, channel) * range.step;
  return std::fma(static_cast<float>(steps), load_half(half + layout.scales, 0),
                  static_cast<float>(range.low) * load_half(half + layout.scales, 1));
}

float value_number(KvCode code, const std::byte* half, std::int32_t head_dim, std::int32_t token,
                   std::int32_t channel) {
  const std::int64_t at = std::int64_t{token} * head_dim + channel;
  if (code == KvCode::kF32) return load<float>(half, at);
  if (code == KvCode::kF16) return load_half(half, at);
  return scaled_number(code, half, false, head_dim, token, channel);
}

bool write_row_12(const float* row, bool of_keys, std::int32_t head_dim, std::int32_t slot, std::byte* half) {
  float largest = 0.0f;
  bool are_finite = true;
  for (std::int32_t d = 0; d < head_dim; ++d) {
    are_finite = are_finite && std::fabs(row[d]) < kv::kBeyond12;
    largest = std::fmax(largest, std::fabs(row[d]));
  }
  const float scale = rounded_to_half(
      std::fma(are_finite ? largest : 0.0f, kv::kUnitMargin / kv::kGreatestCode12, kv::kScaleMargin12));
  store_half(half + half_layout(KvCode::k12, head_dim).scales, slot, scale);
  for (std::int32_t d = 0; d < head_dim; ++d) {
    const float number = are_finite ? row[d] * inverse_of(scale) : 0.0f;
    store_code(KvCode::k12, half, of_keys, slot, d,
               code_within(number, -kv::kGreatestCode12, kv::kGreatestCode12));
  }
  return are_finite;
}

void rotate(std::vector<float>& x) {
  const auto size = static_cast<std::size_t>(kv::rotation_size(static_cast<std::int32_t>(x.size())));
  for (std::size_t distance = 1; distance < size; distance *= 2) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if ((i & distance) != 0) continue;
      const float a = x[i], b = x[i + distance];
      x[i] = a + b;
      x[i + distance] = a - b;
    }
  }
  const float norm = 1.0f / std::sqrt(static_cast<float>(size));
  for (float& value : x) value *= norm;
}

std::vector<float> key_of(const KeyPlace& place, std::int32_t token) {
  const KvCode code = kv::codes_of(place.format).keys;
  if (code == KvCode::kComponents) return component_key(*place.basis, place.cell, place.head_dim, place.block, token);
  std::vector<float> key(static_cast<std::size_t>(place.head_dim));
  for (std::int32_t d = 0; d < place.head_dim; ++d) key[d] = key_number(code, place.cell, place.head_dim, token, d);
  if (kv::is_rotated(code)) rotate(key);
  return key;
}

void convert_cell(const KvConvertArgs& args) {
  const kv::KvCodes from = kv::codes_of(args.from), to = kv::codes_of(args.to);
  if (to.keys == KvCode::kComponents && from.keys != to.keys) {
    Rows keys;
    for (std::int32_t t = 0; t < kTokensPerCell; ++t) keys.push_back(key_of({args.from, args.head_dim, args.source}, t));
    write_components(*args.basis, keys, args.block, args.target);
  } else {
    convert_half(from.keys, to.keys, true, args.head_dim, args.source, args.target);
  }
  convert_half(from.values, to.values, false, args.head_dim,
               args.source + kv::key_bytes(args.from, args.head_dim),
               args.target + kv::key_bytes(args.to, args.head_dim));
}

void measure_cell(const CellMeasureArgs& args) {
  const kv::KvCodes codes = kv::codes_of(args.format);
  const std::byte* values = args.cell + kv::key_bytes(args.format, args.head_dim);
  std::vector<std::vector<float>> unit_keys(kTokensPerCell, std::vector<float>(args.head_dim));
  double ratios = 0.0, longest_value = 0.0;
  for (std::int32_t token = 0; token < kTokensPerCell; ++token) {
    double key_square = 0.0, value_square = 0.0;
    const std::vector<float> keys = key_of({args.format, args.head_dim, args.cell, args.basis, args.block}, token);
    for (std::int32_t d = 0; d < args.head_dim; ++d) {
      const double key = keys[d];
      const double value = value_number(codes.values, values, args.head_dim, token, d);
      key_square += key * key;
      value_square += value * value;
    }
    const double inverse = key_square > 0.0 ? 1.0 / std::sqrt(key_square) : 0.0;
    ratios += std::sqrt(value_square) * inverse;
    longest_value = std::max(longest_value, std::sqrt(value_square));
    for (std::int32_t d = 0; d < args.head_dim; ++d) {
      unit_keys[token][d] = static_cast<float>(keys[d] * inverse);
    }
  }
  if (args.value_key_ratio != nullptr) *args.value_key_ratio = static_cast<float>(ratios / kTokensPerCell);
  if (args.longest_value != nullptr) *args.longest_value = static_cast<float>(longest_value);
  if (args.key_sum == nullptr) return;
  double square = 0.0, dots = 0.0;
  for (std::int32_t d = 0; d < args.head_dim; ++d) {
    double of_cell = 0.0;
    for (const std::vector<float>& key : unit_keys) of_cell += key[d];
    args.key_sum[d] += static_cast<float>(of_cell);
    square += double{args.key_sum[d]} * args.key_sum[d];
    dots += of_cell * args.key_sum[d];
  }
  *args.distinctness = square > 0.0 ? static_cast<float>(-dots / (std::sqrt(square) * kTokensPerCell)) : 0.0f;
}

}  // namespace kvasir::kernels::ref
