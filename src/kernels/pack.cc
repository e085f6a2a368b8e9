#include "kernels/pack.h"

#include <cstring>
#include <type_traits>

#include "kernels/widened.h"
#include "quant/block.h"
#include "quant/formats.h"
#include "quant/sub_scales.h"

namespace kvasir::kernels {
namespace {

void put_nibbles(const std::uint8_t* codes, int row, PackedNibbles& nibbles) {
  for (int i = 0; i < 16; ++i) {
    nibbles[i / 4][4 * row + i % 4] = static_cast<std::uint8_t>((codes[i] & 0x0f) | (codes[16 + i] & 0x0f)
                                                                                        << 4);
  }
}

void put_fifth_bits(const std::uint8_t* codes, int row, PackedFifthBits& plane) {
  for (int i = 0; i < 4; ++i) {
    unsigned bits = 0;
    for (int j = 0; j < kGroupsOf4PerBlock; ++j) bits |= (codes[4 * j + i] >> 4 & 1u) << j;
    plane[4 * row + i] = static_cast<std::uint8_t>(bits);
  }
}

void put_sixth_bits(const std::uint8_t* codes, int row, PackedSixthBits& planes) {
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 4; ++i) {
      unsigned bits = 0;
      for (int j = 0; j < 4; ++j) bits |= (codes[16 * half + 4 * j + i] >> 4 & 3u) << 2 * j;
      planes[half][4 * row + i] = static_cast<std::uint8_t>(bits);
    }
  }
}

void put_bytes(const std::uint8_t* codes, int row, PackedBytes& bytes) {
  for (int j = 0; j < kGroupsOf4PerBlock; ++j) std::memcpy(&bytes[j][4 * row], codes + 4 * j, 4);
}

// put(file block, codes, s, row, unit, i): sub-block s of a file block, with these codes, becomes block i of
// the unit in lane `row`.

void put(const quant::Q4_0::Block& block, const std::uint8_t* codes, int, int row, PackedQ4_0& unit, int i) {
  put_nibbles(codes, row, unit.nibbles[i]);
  unit.scales[i][row] = block.scale;
}

void put(const quant::Q4_1::Block& block, const std::uint8_t* codes, int, int row, PackedQ4_1& unit, int i) {
  put_nibbles(codes, row, unit.nibbles[i]);
  unit.scales[i][row] = block.scale;
  unit.mins[i][row] = block.min;
}

void put(const quant::Q5_0::Block& block, const std::uint8_t* codes, int, int row, PackedQ5_0& unit, int i) {
  put_nibbles(codes, row, unit.nibbles[i]);
  put_fifth_bits(codes, row, unit.high_bits[i]);
  unit.scales[i][row] = block.scale;
}

void put(const quant::Q5_1::Block& block, const std::uint8_t* codes, int, int row, PackedQ5_1& unit, int i) {
  put_nibbles(codes, row, unit.nibbles[i]);
  put_fifth_bits(codes, row, unit.high_bits[i]);
  unit.scales[i][row] = block.scale;
  unit.mins[i][row] = block.min;
}

void put(const quant::Q8_0::Block& block, const std::uint8_t* codes, int, int row, PackedQ8_0& unit, int i) {
  put_bytes(codes, row, unit.codes[i]);
  unit.scales[i][row] = block.scale;
}

template <class Block, class Unit>
void put_sub_scales(const Block& block, int s, int row, Unit& unit) {
  unit.sub_scales[s][row] = quant::sub_scale_of(block.sub_scales_mins, s);
  unit.sub_mins[s][row] = quant::sub_min_of(block.sub_scales_mins, s);
  unit.scales[row] = block.scale;
  unit.min_scales[row] = block.min_scale;
}

void put(const quant::Q4_K::Block& block, const std::uint8_t* codes, int s, int row, PackedQ4_K& unit, int) {
  put_nibbles(codes, row, unit.nibbles[s]);
  put_sub_scales(block, s, row, unit);
}

void put(const quant::Q5_K::Block& block, const std::uint8_t* codes, int s, int row, PackedQ5_K& unit, int) {
  put_nibbles(codes, row, unit.nibbles[s]);
  put_fifth_bits(codes, row, unit.high_bits[s]);
  put_sub_scales(block, s, row, unit);
}

void put(const quant::Q6_K::Block& block, const std::uint8_t* codes, int s, int row, PackedQ6_K& unit, int) {
  put_nibbles(codes, row, unit.nibbles[s]);
  put_sixth_bits(codes, row, unit.high_bits[s]);
  unit.sub_scales[s][0][row] = block.sub_scales[2 * s];
  unit.sub_scales[s][1][row] = block.sub_scales[2 * s + 1];
  unit.scales[row] = block.scale;
}

template <class Unit>
std::int64_t block_group_bytes(std::int64_t k) {
  return units_of<Unit>(k) * static_cast<std::int64_t>(sizeof(Unit));
}

template <class Format>
void pack_block_group(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* packed) {
  using Unit = UnitOf<Format>;
  std::memset(packed, 0, static_cast<std::size_t>(block_group_bytes<Unit>(k)));
  auto* units = static_cast<Unit*>(packed);
  constexpr int kSubBlocks = Format::kBlockElements / quant::kCodesOfBlock;
  for (int row = 0; row < num_rows; ++row) {
    const char* bytes = static_cast<const char*>(rows) + row * row_bytes;
    for (std::int64_t b = 0; b < k / quant::kCodesOfBlock; ++b) {
      const auto block = quant::block_at<typename Format::Block>(bytes, b / kSubBlocks);
      const int s = static_cast<int>(b % kSubBlocks);
      std::uint8_t codes[quant::kCodesOfBlock];
      Format::codes_of(block, s, codes);
      put(block, codes, s, row, units[b / Unit::kBlocks], static_cast<int>(b % Unit::kBlocks));
    }
  }
}

template <class Column>
void pack_column_group(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* packed) {
  std::memset(packed, 0, static_cast<std::size_t>(column_group_bytes<Column>(k)));
  auto* columns = static_cast<Column*>(packed);
  constexpr std::int64_t kElementBytes = sizeof(columns->rows[0]);
  for (int row = 0; row < num_rows; ++row) {
    const char* bytes = static_cast<const char*>(rows) + row * row_bytes;
    for (std::int64_t i = 0; i < k; ++i)
      std::memcpy(&columns[i].rows[row], bytes + i * kElementBytes, kElementBytes);
  }
}

template <class Format>
constexpr FormatKernels make_packing() {
  using Unit = UnitOf<Format>;
  if constexpr (Unit::kDType != quant::kDTypeOf<Format>) {
    static_assert(std::is_same_v<Unit, PackedF16>);
    return {true, column_group_bytes<Unit>, pack_widened_group<Format>, nullptr};
  } else if constexpr (kIsColumn<Unit>) {
    return {true, column_group_bytes<Unit>, pack_column_group<Unit>, nullptr};
  } else {
    return {false, block_group_bytes<Unit>, pack_block_group<Format>, nullptr};
  }
}

}  // namespace

FormatKernels packing_of(DType dtype) {
  switch (dtype) {
#define KVASIR_FORMAT(id, Format) \
  case DType::id:                 \
    return make_packing<quant::Format>();
#include "quant/formats.def"
#undef KVASIR_FORMAT
  }
  return {};
}

}  // namespace kvasir::kernels
