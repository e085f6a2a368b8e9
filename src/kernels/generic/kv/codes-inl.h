// Codes of KV cells in groups of 512 (kv/cells/cell.h), as vectors of 16-bit integers, and back. Included inside an
// ISA's namespace and target region.
//
// A reader takes a group apart in steps: at<i>() is the i-th of kVectorsPerStep vectors of the step that
// begins at `step`. The 16-bit integers of all readers but those of ranges per channel are signed numbers
// that want their scale only.

inline constexpr int kVectorsPerGroup = 16;
inline constexpr int kI16PerVector = 32;
inline constexpr int kNumbersPerGroup = kVectorsPerGroup * kI16PerVector;

// I16x32 as they are: copies for many rows.
struct W8a8Codes {
  static constexpr int kGroupsPerStep = 1;
  static constexpr int kVectorsPerStep = 16;
  static constexpr int kBytesPerStep = 16 * 64;
  template <int kVector>
  KVASIR_FORCE_INLINE static I16x32 at(const std::byte* step, const std::byte*) {
    return load_i16x32(step + 64 * kVector);
  }
};

// Two, four or eight bits: every vector of 64 bytes has the codes of kVectorsPerStep vectors one above the
// other.
template <int kBits, bool kIsSigned>
struct PackedCodes {
  static constexpr int kGroupsPerStep = 1;
  static constexpr int kVectorsPerStep = 16 / kBits;
  static constexpr int kBytesPerStep = 64;
  template <int kVector>
  KVASIR_FORCE_INLINE static I16x32 at(const std::byte* step, const std::byte*) {
    constexpr int kShift = kBits * kVector;
    const I16x32 i16 = load_i16x32(step);
    if constexpr (kIsSigned) return shift_right_signed<16 - kBits>(shift_left<16 - kBits - kShift>(i16));
    if constexpr (kShift == 0) return bit_and(i16, (1 << kBits) - 1);
    if constexpr (kShift + kBits == 16) return shift_right<kShift>(i16);
    return bit_and(shift_right<kShift>(i16), (1 << kBits) - 1);
  }
};

// Three bits: each of three vectors has five codes one above the other, and a bit of the sixteenth on top.
template <bool kIsSigned>
struct PackedCodes<3, kIsSigned> {
  static constexpr int kGroupsPerStep = 1;
  static constexpr int kVectorsPerStep = 16;
  static constexpr int kBytesPerStep = 3 * 64;
  template <int kVector>
  KVASIR_FORCE_INLINE static I16x32 at(const std::byte* step, const std::byte*) {
    if constexpr (kVector == 15) {
      const I16x32 low = select_bits(1, shift_right<15>(load_i16x32(step)),
                                     shift_right<14>(load_i16x32(step + 64)));
      const I16x32 top = load_i16x32(step + 128);
      if constexpr (kIsSigned) return select_bits(3, low, shift_right_signed<13>(top));
      return select_bits(3, low, bit_and(shift_right<13>(top), 4));
    } else {
      constexpr int kShift = kVector % 5 * 3;
      const I16x32 i16 = load_i16x32(step + kVector / 5 * 64);
      if constexpr (kIsSigned) return shift_right_signed<13>(shift_left<13 - kShift>(i16));
      if constexpr (kShift == 0) return bit_and(i16, 7);
      return bit_and(shift_right<kShift>(i16), 7);
    }
  }
};

// Twelve bits: each of three vectors has the codes of one, and four bits of the fourth's below them.
struct Codes12 {
  static constexpr int kVectorsPerStep = 4;
  static constexpr int kBytesPerStep = 3 * 64;
  static constexpr int kGroupsPerStep = 2;  // of values
  template <int kVector>
  KVASIR_FORCE_INLINE static I16x32 at(const std::byte* step, const std::byte*) {
    if constexpr (kVector < 3) return shift_right_signed<4>(load_i16x32(step + 64 * kVector));
    const I16x32 low = select_bits(0x0f00, shift_left<8>(load_i16x32(step + 64)),
                                   shift_left<4>(load_i16x32(step)));
    return shift_right_signed<4>(select_bits(0xf000, shift_left<12>(load_i16x32(step + 128)), low));
  }
};

using Codes8 = PackedCodes<8, true>;
using Codes4 = PackedCodes<4, true>;
using Codes3 = PackedCodes<3, true>;

// Two bits n mean 2 n + 1, n signed: the bit below n is overwritten.
struct Codes2 {
  static constexpr int kGroupsPerStep = 1;
  static constexpr int kVectorsPerStep = 8;
  static constexpr int kBytesPerStep = 64;
  template <int kVector>
  KVASIR_FORCE_INLINE static I16x32 at(const std::byte* step, const std::byte*) {
    return bit_or(shift_right_signed<13>(shift_left<14 - 2 * kVector>(load_i16x32(step))), 1);
  }
};

// Codes of keys with a range per channel, times the channel's step. `ranges` are those of the step's
// channels, two of which make a vector.
template <int kBits>
struct CodesByChannel {
  using Codes = PackedCodes<kBits, false>;
  static constexpr int kVectorsPerStep = Codes::kVectorsPerStep;
  static constexpr int kBytesPerStep = Codes::kBytesPerStep;
  template <int kVector>
  KVASIR_FORCE_INLINE static I16x32 at(const std::byte* step, const std::byte* ranges) {
    return multiply_low_bytes(Codes::template at<kVector>(step, ranges),
                              broadcast_pair(ranges + kVector * 2 * sizeof(kv::ChannelRange)));
  }
};
using Codes4ByChannel = CodesByChannel<4>;
using Codes3ByChannel = CodesByChannel<3>;

template <class Codes, int kVector = 0>
KVASIR_FORCE_INLINE void read_step(const std::byte* step, const std::byte* ranges, std::int16_t* i16) {
  store_i16x32(i16 + kVector * kI16PerVector, Codes::template at<kVector>(step, ranges));
  if constexpr (kVector + 1 < Codes::kVectorsPerStep) read_step<Codes, kVector + 1>(step, ranges, i16);
}

// All groups of a half, [head_dim / 32][16][32] 16-bit integers; `ranges` may be null where codes have none.
template <class Codes>
static void read_i16(const std::byte* codes, const std::byte* ranges, std::int32_t head_dim,
                     std::int16_t* i16) {
  constexpr int kChannelsPerStep = 2 * Codes::kVectorsPerStep;  // of keys
  for (std::int64_t channel = 0; channel < head_dim; channel += kChannelsPerStep) {
    read_step<Codes>(codes, ranges, i16);
    codes += Codes::kBytesPerStep;
    if (ranges != nullptr) ranges += kChannelsPerStep * sizeof(kv::ChannelRange);
    i16 += Codes::kVectorsPerStep * kI16PerVector;
  }
}

static void read_key_i16(kv::KvCode code, const std::byte* half, std::int32_t head_dim, std::int16_t* i16) {
  const std::byte* ranges = half + kv::half_layout(code, head_dim).ranges;
  switch (code) {
    case kv::KvCode::k12:
      return read_i16<Codes12>(half, nullptr, head_dim, i16);
    case kv::KvCode::k8:
      return read_i16<Codes8>(half, nullptr, head_dim, i16);
    case kv::KvCode::k4:
      return read_i16<Codes4>(half, nullptr, head_dim, i16);
    case kv::KvCode::k4Channel:
      return read_i16<Codes4ByChannel>(half, ranges, head_dim, i16);
    case kv::KvCode::k3Channel:
      return read_i16<Codes3ByChannel>(half, ranges, head_dim, i16);
    case kv::KvCode::k3:
      return read_i16<Codes3>(half, nullptr, head_dim, i16);
    case kv::KvCode::k2:
      return read_i16<Codes2>(half, nullptr, head_dim, i16);
    default:  // floats have no 16-bit integers
      return;
  }
}

// Reads two joined groups at a time.
static void read_value_i16_12(const std::byte* step, std::int32_t head_dim, std::int16_t* i16) {
  for (std::int64_t channel = 0; channel < head_dim; channel += 2 * kv::kChannelsPerScale) {
    for (int pair = 0; pair < kTokensPerCell / 2; ++pair) {
      std::int16_t* target = i16 + 2 * pair * kI16PerVector;
      store_i16x32(target, Codes12::at<0>(step, nullptr));
      store_i16x32(target + kI16PerVector, Codes12::at<1>(step, nullptr));
      store_i16x32(target + kNumbersPerGroup, Codes12::at<2>(step, nullptr));
      store_i16x32(target + kNumbersPerGroup + kI16PerVector, Codes12::at<3>(step, nullptr));
      step += Codes12::kBytesPerStep;
    }
    i16 += 2 * kNumbersPerGroup;
  }
}

static void read_value_i16(kv::KvCode code, const std::byte* half, std::int32_t head_dim, std::int16_t* i16) {
  if (code == kv::KvCode::k12) return read_value_i16_12(half, head_dim, i16);
  read_key_i16(code, half, head_dim, i16);
}

// One group, of which the low kBits of each 16-bit integer are the code.
template <int kBits>
static void pack_group(const std::int16_t* i16, std::byte* group) {
  constexpr int kPerVector = 16 / kBits;  // 5 of 3 bits
  for (int v = 0; v < kBits; ++v) {
    I16x32 packed = bit_and(load_i16x32(i16 + v * kPerVector * kI16PerVector), 0);
    for (int i = kPerVector - 1; i >= 0; --i) {
      const I16x32 codes = load_i16x32(i16 + (v * kPerVector + i) * kI16PerVector);
      packed = bit_or(shift_left<kBits>(packed), bit_and(codes, (1 << kBits) - 1));
    }
    if constexpr (kBits == 3) {
      const I16x32 last = load_i16x32(i16 + 15 * kI16PerVector);
      const I16x32 bit = v == 0 ? last : v == 1 ? shift_right<1>(last) : shift_right<2>(last);
      packed = bit_or(packed, shift_left<15>(bit));
    }
    store_i16x32(group + 64 * v, packed);
  }
}
