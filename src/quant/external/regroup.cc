#include "quant/external/regroup.h"

#include <cstring>

#include "base/half.h"
#include "quant/mxfp4/format.h"
#include "quant/q4_0/format.h"
#include "quant/q4_1/format.h"
#include "quant/q8_0/format.h"

namespace kvasir::quant {
namespace {

constexpr std::int64_t kBlock = 32;

void put_nibbles(const std::uint8_t* codes, std::uint8_t* nibbles) {
  for (int i = 0; i < 16; ++i) nibbles[i] = static_cast<std::uint8_t>(codes[i] | codes[i + 16] << 4);
}

}  // namespace

void write_q4_0(const GroupedRow& row, std::byte* out) {
  for (std::int64_t begin = 0; begin < row.length; begin += kBlock, out += sizeof(Q4_0::Block)) {
    Q4_0::Block block{.scale = float_to_half(row.scales[begin / row.group_size]), .nibbles = {}};
    put_nibbles(row.codes + begin, block.nibbles);
    std::memcpy(out, &block, sizeof block);
  }
}

void write_q4_1(const GroupedRow& row, std::byte* out) {
  for (std::int64_t begin = 0; begin < row.length; begin += kBlock, out += sizeof(Q4_1::Block)) {
    const std::int64_t group = begin / row.group_size;
    const float scale = row.scales[group];
    Q4_1::Block block{.scale = float_to_half(scale),
                      .min = float_to_half(-scale * static_cast<float>(row.zeros[group])),
                      .nibbles = {}};
    put_nibbles(row.codes + begin, block.nibbles);
    std::memcpy(out, &block, sizeof block);
  }
}

void write_q8_0(const GroupedRow& row, std::byte* out) {
  for (std::int64_t begin = 0; begin < row.length; begin += kBlock, out += sizeof(Q8_0::Block)) {
    Q8_0::Block block{.scale = float_to_half(row.scales[begin / row.group_size]), .codes = {}};
    for (int i = 0; i < kBlock; ++i) block.codes[i] = static_cast<std::int8_t>(row.codes[begin + i] - 128);
    std::memcpy(out, &block, sizeof block);
  }
}

void write_floats(const GroupedRow& row, const std::int32_t* group_of, float* out) {
  for (std::int64_t i = 0; i < row.length; ++i) {
    const std::int64_t group = group_of != nullptr ? group_of[i] : i / row.group_size;
    out[i] = row.scales[group] * static_cast<float>(row.codes[i] - row.zeros[group]);
  }
}

void write_mxfp4(const std::byte* nibbles, const std::byte* exponents, std::int64_t num_blocks, std::byte* out) {
  for (std::int64_t b = 0; b < num_blocks; ++b, nibbles += 16, out += sizeof(MXFP4::Block)) {
    std::uint8_t codes[32];
    for (int i = 0; i < 16; ++i) {
      const auto both = static_cast<std::uint8_t>(nibbles[i]);
      codes[2 * i] = both & 15;
      codes[2 * i + 1] = both >> 4;
    }
    MXFP4::Block block{.exponent = static_cast<std::uint8_t>(exponents[b]), .nibbles = {}};
    put_nibbles(codes, block.nibbles);
    std::memcpy(out, &block, sizeof block);
  }
}

}  // namespace kvasir::quant
