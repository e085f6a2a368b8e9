// Cells of the KV cache: keys and values of 16 tokens of one (layer, KV head), in one of several formats.
//
// A cell is its keys, then its values. Tokens are written one by one as f32, f16 or q12; the coarser formats
// are for whole cells, and need a head_dim that is a multiple of 32, q12 of 64. The numbers of a rotated half
// stand for H x, where H is the normalised Hadamard matrix over head_dim (blocks of its largest power of
// two): rotation spreads what a few channels carry, so that few bits hold it (QuaRot, Ashkboos et al. 2024),
// and (H q).(H k) = q.k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/checked_math.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

inline constexpr std::int32_t kTokensPerBlock = 16;  // and per cell
inline constexpr std::int32_t
    kChannelsPerScale = 32;  // of the codes of four bits and less that have a scale per token

// By bytes, the exact ones first. The number is what a cell reference keeps in its low bits.
enum class KvFormat : std::uint8_t {
  kGone,   // no memory
  kF32,    // as computed
  kF16,    // rounded
  kQ12,    // 12-bit keys, 12-bit values
  kQ8,     // 8-bit keys, 8-bit values
  kK8V4,   // 8-bit keys, 4-bit rotated values
  kK4cV4,  // 4-bit keys with a range per channel, 4-bit rotated values
  kK4V4,   // 4-bit rotated keys and values
  kK4cV3,  // 4-bit keys with a range per channel, 3-bit rotated values
  kK4V3,   // 4-bit rotated keys, 3-bit rotated values
  kK3cV3,  // 3-bit keys with a range per channel, 3-bit rotated values
  kK3V3,   // 3-bit rotated keys and values
  kK4V2,   // 4-bit rotated keys, 2-bit rotated values
  kK3cV2,  // 3-bit keys with a range per channel, 2-bit rotated values
  kK3V2,   // 3-bit rotated keys, 2-bit rotated values
  kK2pV2,  // keys in principal components, 2 bits on average; 2-bit rotated values
};
inline constexpr int kNumKvFormats = 16;

// As on command lines and in files.
constexpr std::string_view name_of(KvFormat format) {
  constexpr std::string_view kNames[kNumKvFormats] = {"gone",  "f32",   "f16",   "q12",  "q8",
                                                      "k8v4",  "k4cv4", "k4v4",  "k4cv3", "k4v3",
                                                      "k3cv3", "k3v3",  "k4v2",  "k3cv2", "k3v2", "k2pv2"};
  return kNames[static_cast<std::size_t>(format)];
}

constexpr std::optional<KvFormat> format_named(std::string_view name) {
  for (int i = 0; i < kNumKvFormats; ++i) {
    if (name_of(static_cast<KvFormat>(i)) == name) return static_cast<KvFormat>(i);
  }
  return std::nullopt;
}

// How the keys or the values of a cell are written; by bytes, the exact ones first.
enum class KvCode : std::uint8_t {
  kF32,  // keys [head_dim][16], values [16][head_dim]
  kF16,
  k12,        // 12 bits n that mean scale * n, a f16 scale per token: [16]
  k8,         // 8 bits, the same
  k4Channel,  // keys: 4 bits n without sign that mean low + step * n, both per channel
  k4,  // rotated; 4 bits n that mean scale * n, a f16 scale per token and 32 channels: [head_dim/32][16]
  k3Channel,  // keys: 3 bits n without sign that mean low + step * n
  k3,         // rotated; 3 bits n that mean scale * n, scales as k4
  k2,         // values: rotated; 2 bits n that mean scale * (2 n + 1), scales as k4
  kComponents,  // keys: planes of bits of their principal components (key_basis.h), [2 head_dim][16]
};
inline constexpr int kNumKvCodes = 10;

struct KvCodes {
  KvCode keys, values;
};

constexpr KvCodes codes_of(KvFormat format) {
  switch (format) {
    case KvFormat::kF32:
      return {KvCode::kF32, KvCode::kF32};
    case KvFormat::kQ12:
      return {KvCode::k12, KvCode::k12};
    case KvFormat::kQ8:
      return {KvCode::k8, KvCode::k8};
    case KvFormat::kK8V4:
      return {KvCode::k8, KvCode::k4};
    case KvFormat::kK4cV4:
      return {KvCode::k4Channel, KvCode::k4};
    case KvFormat::kK4V4:
      return {KvCode::k4, KvCode::k4};
    case KvFormat::kK4cV3:
      return {KvCode::k4Channel, KvCode::k3};
    case KvFormat::kK4V3:
      return {KvCode::k4, KvCode::k3};
    case KvFormat::kK3cV3:
      return {KvCode::k3Channel, KvCode::k3};
    case KvFormat::kK3V3:
      return {KvCode::k3, KvCode::k3};
    case KvFormat::kK4V2:
      return {KvCode::k4, KvCode::k2};
    case KvFormat::kK3cV2:
      return {KvCode::k3Channel, KvCode::k2};
    case KvFormat::kK3V2:
      return {KvCode::k3, KvCode::k2};
    case KvFormat::kK2pV2:
      return {KvCode::kComponents, KvCode::k2};
    default:
      return {KvCode::kF16, KvCode::kF16};
  }
}

// Whether a cell of format `from` may become `to`: neither half gets finer, for what is lost does not return.
constexpr bool is_coarser(KvFormat to, KvFormat from) {
  if (from == KvFormat::kGone || to == from) return false;
  if (to == KvFormat::kGone) return true;
  return codes_of(to).keys >= codes_of(from).keys && codes_of(to).values >= codes_of(from).values;
}

constexpr bool is_rotated(KvCode code) {
  return code == KvCode::k4 || code == KvCode::k3 || code == KvCode::k2;
}
constexpr bool has_range_per_channel(KvCode code) {
  return code == KvCode::k4Channel || code == KvCode::k3Channel;
}

// Channels that are rotated together: the largest power of two that divides head_dim.
constexpr std::int32_t rotation_size(std::int32_t head_dim) { return head_dim & -head_dim; }

// Units of ranges per channel are a little larger than needed, so that rounding them to f16 does not make
// them too small.
inline constexpr float kUnitMargin = 1.0009765625f;

// The greatest code of 12 bits. The scale is the largest magnitude of a token times the margin over this, and
// half of the least f16 besides: among the least of these rounding takes more than the margin.
inline constexpr float kGreatestCode12 = 2047.0f;
inline constexpr float kScaleMargin12 = 0x1p-25f;
// The least magnitude whose scale might be no f16.
inline constexpr float kBeyond12 = 1.3e8f;

// The scale of 2-bit codes, of the largest magnitude of 32 numbers: what four levels lose of normal numbers
// is least when they, two scales from each other, lie one standard deviation apart (Max, "Quantizing for
// minimum distortion", 1960).
inline constexpr float kTwoBitScale = 0.215f;

// Codes come first, 16 tokens and 32 channels after each other: such a *group* is 16 vectors of 32 codes, two
// in each of the 16 lanes that the integer dot products of attention have. Lane l of vector v is
//   of keys    token l, channels 2 v and 2 v + 1
//   of values  channel 16 (v % 2) + l, tokens 2 (v / 2) and 2 (v / 2) + 1
// and a group of b bits is b x 32 words of 16 bits: code c of a vector lies in word c of some 32, one above
// the other with those of the next vectors. With three bits five vectors lie one above the other; bit i of
// the sixteenth vector's codes is the top bit of the i-th 32 words.
//
// With 12 bits each of three vectors has the upper bits of its words, and the i-th four bits of the fourth
// vector's codes lie below them in the i-th 32 words. So that no word has codes of tokens that others may
// write at the same time, groups of values are joined by twos: vector v of 32 is channels 16 (v % 4) + l of
// 64, tokens 2 (v / 4) and 2 (v / 4) + 1.
struct KvCodePlace {
  std::int32_t byte;  // of the word, from the begin of the half
  std::int32_t bit;   // of the word
};

// Where vector v of the group has its code c; of the sixteenth vector of three bits and every fourth of
// twelve, where its lowest bit is.
constexpr KvCodePlace code_place(int bits, std::int32_t group, std::int32_t vector, std::int32_t code) {
  const std::int32_t per_word = 16 / bits;
  const std::int32_t begin = group * bits * 64 + 2 * code;
  if (bits == 12) {
    const std::int32_t of_four = begin + vector / 4 * 3 * 64;
    return vector % 4 == 3 ? KvCodePlace{of_four, 0} : KvCodePlace{of_four + vector % 4 * 64, 4};
  }
  if (bits == 3 && vector == 15) return {begin, 15};
  return {begin + vector / per_word * 64, vector % per_word * bits};
}

// A channel's range, in units of the cell.
struct ChannelRange {
  std::uint8_t step;
  std::int8_t low;
};
static_assert(sizeof(ChannelRange) == 2);

// Where the parts of the coarser halves begin behind the codes, in bytes.
struct KvHalfLayout {
  std::int32_t scales;  // f16; with a range per channel the units of steps and of lows
  std::int32_t ranges;  // with a range per channel: [head_dim]
  std::int32_t bytes;   // of the half, a multiple of 32
};

constexpr KvHalfLayout half_layout(KvCode code, std::int32_t head_dim) {
  const std::int32_t size = head_dim * kTokensPerBlock;
  const std::int32_t scale_bytes = 2 * size / kChannelsPerScale;
  switch (code) {
    case KvCode::kF32:
      return {0, 0, 4 * size};
    case KvCode::kF16:
      return {0, 0, 2 * size};
    case KvCode::k12:
      return {3 * size / 2, 0, 3 * size / 2 + 2 * kTokensPerBlock};
    case KvCode::k8:
      return {size, 0, size + 2 * kTokensPerBlock};
    case KvCode::k4:
      return {size / 2, 0, size / 2 + scale_bytes};
    case KvCode::k4Channel:
      return {size / 2 + 2 * head_dim, size / 2, size / 2 + 2 * head_dim + 32};
    case KvCode::k3Channel:
      return {3 * size / 8 + 2 * head_dim, 3 * size / 8, 3 * size / 8 + 2 * head_dim + 32};
    case KvCode::k3:
      return {3 * size / 8, 0, 3 * size / 8 + scale_bytes};
    case KvCode::k2:
      return {size / 4, 0, size / 4 + scale_bytes};
    case KvCode::kComponents:
      return {0, 0, size / 4};
  }
  return {};
}

// Such a format needs statistics of the model's keys (key_basis.h). The first tokens' keys are far from all others, so it
// is not for the first block of a sequence.
constexpr bool has_key_components(KvFormat format) { return codes_of(format).keys == KvCode::kComponents; }

constexpr bool supports(KvFormat format, std::int32_t head_dim) {
  if (format == KvFormat::kQ12) return head_dim % (2 * kChannelsPerScale) == 0;
  return format == KvFormat::kF16 || format == KvFormat::kF32 || head_dim % kChannelsPerScale == 0;
}
constexpr std::int64_t key_bytes(KvFormat format, std::int32_t head_dim) {
  return half_layout(codes_of(format).keys, head_dim).bytes;
}
constexpr std::int64_t cell_bytes(KvFormat format, std::int32_t head_dim) {
  if (format == KvFormat::kGone) return 0;
  return key_bytes(format, head_dim) + half_layout(codes_of(format).values, head_dim).bytes;
}

// A cell in memory; null where it is gone.
struct KvCell {
  const std::byte* data = nullptr;
  KvFormat format = KvFormat::kGone;
};

// Where a cell lies in its storage, in 8 bytes: an offset that is a multiple of 32, and the format.
class KvCellRef {
 public:
  static constexpr std::int64_t kAlignment = 32;

  constexpr KvCellRef() = default;
  constexpr KvCellRef(std::int64_t offset, KvFormat format)
      : bits_(static_cast<std::uint64_t>(offset) | static_cast<std::uint64_t>(format)) {}

  constexpr KvFormat format() const { return static_cast<KvFormat>(bits_ % kAlignment); }
  constexpr std::int64_t offset() const { return static_cast<std::int64_t>(bits_ / kAlignment * kAlignment); }
  constexpr bool is_gone() const { return format() == KvFormat::kGone; }
  friend constexpr bool operator==(KvCellRef, KvCellRef) = default;

 private:
  std::uint64_t bits_ = 0;
};
static_assert(kNumKvFormats <= KvCellRef::kAlignment);

struct KeyBasis;

// A cell that is to be written anew: the runtime does it before the next step reads or writes anything.
struct CellConversion {
  KvCellRef from;
  KvCellRef to;
  std::int32_t head_dim = 0;
  const KeyBasis* basis = nullptr;  // of keys that become components
  std::int32_t block = 0;           // logical, likewise
};

// Where the cells of a layer group lie: [cells of a block][blocks of the pool], because attention reads the
// same cell of block after block.
struct CellDirectory {
  const KvCellRef* refs = nullptr;
  std::int64_t stride = 0;  // references from one cell of a block to its next
  // By block of the pool: another number once some cell of it is another one. Null: not counted.
  const std::uint32_t* versions = nullptr;

  const KvCellRef* of_cell(std::int64_t cell) const { return refs + cell * stride; }
  KvCellRef at(BlockId block, std::int64_t cell) const { return of_cell(cell)[index_of(block)]; }
};

// The cells of one (layer, KV head) of one sequence. Absolute position and place are apart: block i of the
// sequence, of the positions from 16 i, is blocks[i] of the pool.
struct KvCellMap {
  const BlockId* blocks = nullptr;    // by logical block; kHole where the whole block is gone
  const KvCellRef* refs = nullptr;    // [blocks of the pool]
  const std::byte* memory = nullptr;  // that the references' offsets count from

  KvCell find(std::int64_t logical_block) const {
    const BlockId block = blocks[logical_block];
    if (block == kHole) return {};
    const KvCellRef ref = refs[index_of(block)];
    if (ref.is_gone()) return {};
    return {memory + ref.offset(), ref.format()};
  }
};

constexpr std::int32_t blocks_for(std::int32_t num_tokens) { return ceil_div(num_tokens, kTokensPerBlock); }

}  // namespace kvasir::kv
