// Rounding the other operand of attention over integer codes, a query or the softmax weights of a tile times
// the scales of its values, to 16-bit integers: 15 bits with a sign, in units of a row's own. Included inside
// an ISA's namespace and target region.

#include "kernels/generic/attention/tile-inl.h"

inline constexpr float kLargestI16 = 16383.0f;
// Numbers below are too near to 0 for their inverse.
inline constexpr float kLeastUnit = 1e-30f;

// Codes of rows that are rounded alone, and the unit of each row's. The distance of two rows is a constant,
// so that one register is enough to find all rows of a strip.
struct RoundedRows {
  const std::int16_t* i16;  // [rows][kQueryStride] or [rows][kTokensPerTile]
  const float* units;       // [rows]
};
inline constexpr std::int64_t kQueryStride = kMaxHeadDim + 32;  // whose rows do not meet in a set of L1

// The factor that turns numbers up to `largest` into 16-bit integers, and the unit of these. The unit of no
// numbers is -0, for acc + 0 * -0 is acc, also where that is -0.
struct Rounding {
  F32x16 inverse;
  float unit;
};
static Rounding rounding_of(float largest) {
  if (largest < kLeastUnit) return {zero(), -0.0f};
  return {broadcast(kLargestI16 / largest), largest * (1.0f / kLargestI16)};
}

// Writes the 16-bit integers of a row and returns their unit.
static float round_row(const float* row, std::int32_t head_dim, std::int16_t* i16) {
  F32x16 largest = zero();
  for (std::int64_t d = 0; d < head_dim; d += 16) largest = max(abs(load(row + d)), largest);
  const Rounding rounding = rounding_of(reduce_max(largest));
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    store_as_i16(i16 + d, round_to_int(mul(load(row + d), rounding.inverse)));
  }
  return rounding.unit;
}

// Cells of one code whose values are to be added, weighted.
struct WeightedCells {
  RoundedRows weights;        // [rows][kTokensPerTile], those of each cell's 16 tokens behind each other
  std::int64_t group_stride;  // from the weights of 32 channels to those of the next; 0: the same for all
  const float* corrections;   // [rows], of what `out` has so far
  const HalfCell* cells[kCellsPerTile];
  int places[kCellsPerTile];  // in the tile
  int num_cells;
  std::int32_t head_dim;
  bool may_be_unwritten;  // keys with the weight 0 may have no scale
};

inline constexpr int kMaxScaleGroups = kMaxHeadDim / kv::kChannelsPerScale;

// Rounds the softmax weights [num_rows][kTokensPerTile] of a tile times the scales of the values, where a
// value has one scale for all channels. A key that a row does not see has the weight 0.
static void round_alike_weights(const float* weights, int num_rows, const WeightedCells& cells,
                                std::int16_t* i16, float* units) {
  const kv::KvCode code = cells.cells[0]->code;
  F32x16 scales[kCellsPerTile];
  for (int c = 0; c < kCellsPerTile; ++c) {
    scales[c] = c < cells.num_cells ? load_scales(code, cells.cells[c]->scales, 0) : zero();
  }
  for (int r = 0; r < num_rows; ++r) {
    F32x16 products[kCellsPerTile];
    F32x16 largest = zero();
#pragma GCC unroll 4
    for (int c = 0; c < kCellsPerTile; ++c) {
      const F32x16 weight = load(weights + r * kTokensPerTile + cells.places[c] * kTokensPerCell);
      products[c] = mul(weight, scales[c]);
      if (cells.may_be_unwritten) products[c] = select(equal(weight, zero()), zero(), products[c]);
      largest = max(abs(products[c]), largest);
    }
    const Rounding rounding = rounding_of(reduce_max(largest));
    units[r] = rounding.unit;
#pragma GCC unroll 4
    for (int c = 0; c < kCellsPerTile; ++c) {
      store_as_i16(i16 + r * kTokensPerTile + c * kTokensPerCell,
                   round_to_int(mul(products[c], rounding.inverse)));
    }
  }
}

// The same where values have scales for each group of channels; `i16` is [group][kRows][kTokensPerTile].
template <int kRows>
static void round_weights(const float* weights, const WeightedCells& cells, std::int16_t* i16, float* units) {
  const kv::KvCode code = cells.cells[0]->code;
  const int num_groups = cells.head_dim / kv::kChannelsPerScale;
  const int num_keys = cells.num_cells * kTokensPerCell;
  alignas(64) float scaled[kMaxScaleGroups * kRows * kTokensPerTile];
  F32x16 largest[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) largest[r] = zero();
  for (int c = 0; c < cells.num_cells; ++c) {
    F32x16 weight[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      weight[r] = load(weights + r * kTokensPerTile + cells.places[c] * kTokensPerCell);
    for (int group = 0; group < num_groups; ++group) {
      const F32x16 scale = load_scales(code, cells.cells[c]->scales, group);
      float* target = scaled + group * kRows * kTokensPerTile + c * kTokensPerCell;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const F32x16 product = mul(weight[r], scale);
        store(target + r * kTokensPerTile, product);
        largest[r] = max(abs(product), largest[r]);
      }
    }
  }
  F32x16 inverse[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const Rounding rounding = rounding_of(reduce_max(largest[r]));
    inverse[r] = rounding.inverse;
    units[r] = rounding.unit;
  }
  for (int group = 0; group < num_groups; ++group) {
    const std::int64_t begin = std::int64_t{group} * kRows * kTokensPerTile;
    for (std::int64_t key = begin; key < begin + num_keys; key += 16) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t at = key + r * kTokensPerTile;
        store_as_i16(i16 + at, round_to_int(mul(load(scaled + at), inverse[r])));
      }
    }
  }
}

static void round_weights(const float* weights, int num_rows, const WeightedCells& cells, std::int16_t* i16,
                          float* units) {
  if (cells.group_stride == 0) return round_alike_weights(weights, num_rows, cells, i16, units);
  switch (num_rows) {
    case 1:
      return round_weights<1>(weights, cells, i16, units);
    case 2:
      return round_weights<2>(weights, cells, i16, units);
    case 3:
      return round_weights<3>(weights, cells, i16, units);
    case 4:
      return round_weights<4>(weights, cells, i16, units);
    case 5:
      return round_weights<5>(weights, cells, i16, units);
    default:
      return round_weights<6>(weights, cells, i16, units);
  }
}
