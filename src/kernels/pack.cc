#include "kernels/pack.h"

#include <algorithm>
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

void put_third_bits(const std::uint8_t* codes, int row, PackedFifthBits& plane) {
  std::uint8_t up[quant::kCodesOfBlock];
  for (int i = 0; i < quant::kCodesOfBlock; ++i) up[i] = static_cast<std::uint8_t>(codes[i] << 2);
  put_fifth_bits(up, row, plane);
}

void put_low_bits(const std::uint8_t* codes, int row, PackedLowBits& planes) {
  std::uint8_t up[quant::kCodesOfBlock];
  for (int i = 0; i < quant::kCodesOfBlock; ++i) up[i] = static_cast<std::uint8_t>(codes[i] << 4);
  put_sixth_bits(up, row, planes);
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

void put(const quant::Q3_K::Block& block, const std::uint8_t* codes, int s, int row, PackedQ3_K& unit, int) {
  put_low_bits(codes, row, unit.low_bits[s]);
  put_third_bits(codes, row, unit.third_bits[s]);
  for (int half = 0; half < 2; ++half) {
    unit.sub_scales[s][half][row] = static_cast<std::int8_t>(quant::Q3_K::sub_scale_of(block, 2 * s + half));
  }
  unit.scales[row] = block.scale;
}

void put(const quant::Q2_K::Block& block, const std::uint8_t* codes, int s, int row, PackedQ2_K& unit, int) {
  put_low_bits(codes, row, unit.low_bits[s]);
  for (int half = 0; half < 2; ++half) {
    unit.sub_scales[s][half][row] = block.sub_scales_mins[2 * s + half] & 0x0f;
    unit.sub_mins[s][half][row] = block.sub_scales_mins[2 * s + half] >> 4;
  }
  unit.scales[row] = block.scale;
  unit.min_scales[row] = block.min_scale;
}

// Codes of 8 bits back to the nibbles that the table made them from.
template <class Unit>
void put_table_nibbles(const std::uint8_t* codes, int row, int i, Unit& unit) {
  std::uint8_t nibbles[quant::kCodesOfBlock];
  for (int j = 0; j < quant::kCodesOfBlock; ++j) {
    nibbles[j] = static_cast<std::uint8_t>(std::find(Unit::kTable, Unit::kTable + 16, codes[j]) -
                                           Unit::kTable);
  }
  put_nibbles(nibbles, row, unit.nibbles[i]);
}

void put(const quant::IQ4_NL::Block& block, const std::uint8_t* codes, int, int row, PackedIQ4_NL& unit,
         int i) {
  put_table_nibbles(codes, row, i, unit);
  unit.scales[i][row] = block.scale;
}

void put(const quant::IQ4_XS::Block& block, const std::uint8_t* codes, int s, int row, PackedIQ4_XS& unit,
         int) {
  put_table_nibbles(codes, row, s, unit);
  unit.sub_scales[s][row] = static_cast<std::int8_t>(quant::IQ4_XS::sub_scale_of(block, s));
  unit.scales[row] = block.scale;
}

void put(const quant::MXFP4::Block& block, const std::uint8_t* codes, int, int row, PackedMXFP4& unit,
         int i) {
  put_table_nibbles(codes, row, i, unit);
  unit.exponents[i][row] = block.exponent;
}

template <class Block>
void put(const Block& block, const std::uint8_t* codes, int, int row, PackedTwoBits& unit, int i) {
  put_low_bits(codes, row, unit.low_bits[i]);
  unit.scales[i][row] = block.scale;
}

template <class Format>
void put_scaled(const typename Format::Block& block, std::uint8_t* codes, int s, int row,
                PackedScaledBytes& unit) {
  static_assert(Format::kZeroPoint == 128);
  put_bytes(codes, row, unit.codes[0]);
  for (int half = 0; half < 2; ++half) unit.scales[0][half][row] = Format::scale_of(block, 2 * s + half);
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
      Unit& unit = units[b / Unit::kBlocks];
      if constexpr (std::is_same_v<Unit, PackedScaledBytes>) {
        put_scaled<Format>(block, codes, s, row, unit);
      } else {
        put(block, codes, s, row, unit, static_cast<int>(b % Unit::kBlocks));
      }
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
  if constexpr (kIsColumn<Unit> && Unit::kDType != quant::kDTypeOf<Format>) {
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
