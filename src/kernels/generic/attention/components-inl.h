// Scores of a strip of query rows against cells whose keys are principal components. Included inside an ISA's namespace and
// target region.
//
// For each block a query is turned back, rounded to 16-bit integers and projected on the components; then it meets planes of bits. A bit of a component
// adds the query's weight of that component, and sums are doubled from each bit to the next lower one. So no number of a
// cell is ever unpacked. A score is a chain of its own: rows and cells side by side change no bit of it.

#include "kernels/generic/attention/rounding-inl.h"

// The distance of two rows of weights is a constant, so that one register is enough to find all of them.
inline constexpr std::int64_t kWeightStride = kMaxHeadDim + 16;

// weights[row][component ...] = row x the query's matrix, kVectors vectors wide.
template <int kRows, int kVectors>
static void project_query_columns(const kv::KeyBasis& basis, const RoundedRows& q, std::int64_t head_dim, std::int64_t column, float* weights) {
  I32x16 acc[kRows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) acc[r][v] = zero_int();
  }
  const std::int16_t* const codes = basis.query_codes + column * head_dim;
  for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
    I16x32 factor[kVectors];
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) factor[v] = load_i16x32(codes + v * 16 * head_dim + pair * kI16PerVector);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const I16x32 query = broadcast_pair(q.i16 + r * kQueryStride + 2 * pair);
#pragma GCC unroll 12
      for (int v = 0; v < kVectors; ++v) acc[r][v] = add_products(acc[r][v], query, factor[v]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    const F32x16 unit = broadcast(q.units[r]);
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      store(weights + r * kWeightStride + column + 16 * v, mul(to_float(acc[r][v]), mul(unit, load(basis.query_units + column + 16 * v))));
    }
  }
}

template <int kRows>
static void project_queries(const kv::KeyBasis& basis, const RoundedRows& q, std::int64_t head_dim, float* weights) {
  constexpr int kBeside = vectors_beside(kRows);
  std::int64_t column = 0;
  for (; column + 16 * kBeside <= basis.stride; column += 16 * kBeside) {
    project_query_columns<kRows, kBeside>(basis, q, head_dim, column, weights);
  }
  if (kBeside == 4 && column + 32 <= basis.stride) {
    project_query_columns<kRows, 2>(basis, q, head_dim, column, weights);
    column += 32;
  }
  for (; column < basis.stride; column += 16) project_query_columns<kRows, 1>(basis, q, head_dim, column, weights);
}

// Adds up the planes of kCells cells for kRows rows; `weights` is [kCells][kRows][kWeightStride], `constants` [kCells][kRows].
template <int kRows, int kCells>
static void score_planes(const kv::KeyBasis& basis, const float* weights, const float* constants, const KeyCell* cells) {
  F32x16 acc[kCells][kRows];
  const std::uint16_t* planes[kCells];
#pragma GCC unroll 12
  for (int c = 0; c < kCells; ++c) {
    planes[c] = reinterpret_cast<const std::uint16_t*>(cells[c].cell->data);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) acc[c][r] = zero();
  }
  for (int bit = kv::kMaxComponentBits; bit-- > 0;) {
#pragma GCC unroll 12
    for (int c = 0; c < kCells; ++c) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) acc[c][r] = add(acc[c][r], acc[c][r]);
    }
    for (std::int64_t component = 0; component < basis.num_with_bit[bit]; ++component) {
#pragma GCC unroll 12
      for (int c = 0; c < kCells; ++c) {
        const Mask16 lanes = lanes_of(*planes[c]++);
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          acc[c][r] = add_where(lanes, acc[c][r], broadcast(weights[(c * kRows + r) * kWeightStride + component]));
        }
      }
    }
  }
#pragma GCC unroll 12
  for (int c = 0; c < kCells; ++c) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      store(cells[c].scores + r * kTokensPerTile, add(acc[c][r], broadcast(constants[c * kRows + r])));
    }
  }
}

static void prefetch_next(const HalfCell& cell, std::int32_t head_dim) {
  const std::int32_t num_lines = cell.next_lines_per_group * (head_dim / kv::kChannelsPerScale);
  for (std::int32_t line = 0; line < num_lines; ++line) prefetch_into_l2(cell.next + 64 * line);
}

// A query turned back by the position of the block's first token: what rope() gives, in one pass where vectors are whole,
// because what is stored with a mask cannot be loaded again at once.
static void turn_query_back(const kv::KeyBasis& basis, std::int32_t block, const float* query, std::int32_t head_dim, float* turned) {
  const std::int32_t half = basis.rotary_dim / 2;
  if (!basis.turns_halves || half % 16 != 0) {
    __builtin_memcpy(turned, query, static_cast<std::size_t>(head_dim) * sizeof(float));
    return turn_back(basis, block, turned);
  }
  const float *cos = basis.angles_of(block), *sin = cos + half;
  for (std::int32_t i = 0; i < half; i += 16) {
    const F32x16 a = load(query + i), b = load(query + half + i), c = load(cos + i), s = load(sin + i);
    store(turned + i, fms(a, c, mul(b, s)));
    store(turned + half + i, fma(b, c, mul(a, s)));
  }
  for (std::int32_t i = basis.rotary_dim; i < head_dim; i += 16) store(turned + i, load(query + i));
}

static float dot(const float* a, const float* b, std::int64_t head_dim) {
  F32x16 sum = zero();
  for (std::int64_t d = 0; d < head_dim; d += 16) sum = fma(load(a + d), load(b + d), sum);
  return reduce_add(sum);
}

template <int kRows, int kCells>
static void score_component_cells(const AttentionArgs& args, const float* q, const KeyCell* cells) {
  const kv::KeyBasis& basis = *args.basis;
  const std::int64_t head_dim = args.head_dim;
  constexpr int kTurned = kRows * kCells;
  alignas(64) std::int16_t i16[kTurned * kQueryStride];
  alignas(64) float weights[kTurned * kWeightStride];
  float units[kTurned], constants[kTurned];
  for (int c = 0; c < kCells; ++c) {
    prefetch_next(*cells[c].cell, args.head_dim);
    for (int r = 0; r < kRows; ++r) {
      const int index = c * kRows + r;
      alignas(64) float turned[kMaxHeadDim];
      turn_query_back(basis, cells[c].cell->block, q + r * head_dim, args.head_dim, turned);
      constants[index] = dot(turned, basis.constants, head_dim);
      units[index] = round_row(turned, args.head_dim, i16 + index * kQueryStride);
    }
  }
  project_queries<kTurned>(basis, {i16, units}, head_dim, weights);
  score_planes<kRows, kCells>(basis, weights, constants, cells);
}

// Rows of all cells that are projected together: as many chains of sums as keep the units busy.
inline constexpr int kMaxTurnedRows = kVectorRegisters >= 32 ? 12 : 6;

template <int kRows>
static void score_component_strip(const AttentionArgs& args, const float* q, const KeyCell* cells, int count) {
  constexpr int kBeside = kMaxTurnedRows / kRows < 6 ? kMaxTurnedRows / kRows : 6;
  int c = 0;
  for (; c + kBeside <= count; c += kBeside) score_component_cells<kRows, kBeside>(args, q, cells + c);
  for (; c < count; ++c) score_component_cells<kRows, 1>(args, q, cells + c);
}

// `q` is [num_rows][head_dim].
static void score_components(const AttentionArgs& args, int num_rows, const float* q, const KeyCell* cells, int count) {
  switch (num_rows) {
    case 1:
      return score_component_strip<1>(args, q, cells, count);
    case 2:
      return score_component_strip<2>(args, q, cells, count);
    case 3:
      return score_component_strip<3>(args, q, cells, count);
    case 4:
      return score_component_strip<4>(args, q, cells, count);
    case 5:
      return score_component_strip<5>(args, q, cells, count);
    default:
      return score_component_strip<6>(args, q, cells, count);
  }
}
