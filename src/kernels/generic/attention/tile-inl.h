// The two matrix products of attention over cells of floats, for a strip of up to six query rows; a tile is
// 64 keys. Included inside an ISA's namespace and target region.
//
// Every value is one chain of fma: scores run over head_dim with keys in the lanes, outputs over the keys in
// order with head_dim in the lanes. How many rows share a strip changes no bit.

#include "kernels/generic/kv/convert-inl.h"

inline constexpr int kMaxRowsPerStrip = 6;
inline constexpr int kCellsPerTile = kTokensPerTile / kTokensPerCell;

// The keys or the values of a cell; data is null where it is gone. `next` is what a later step of attention
// will read in its place: blocks lie far apart, so nothing but a prefetch announces them.
struct HalfCell {
  const std::byte* data;
  const std::byte* next;
  const std::byte* ranges;      // of integer codes with a range per channel
  const std::uint16_t* scales;  // of integer codes
  const std::byte*
      widened;  // the numbers as float32 or the codes as 16-bit integers, for many strips; or null
  int next_lines_per_group;  // cache lines of `next` for every 32 channels
  std::int32_t next_bytes;   // of `next`
  std::int32_t block;        // the cell's place in its sequence
  kv::KvCode code;

  bool is_float_like(const HalfCell& other) const { return data != nullptr && code == other.code; }
};

template <class Keys, int kRows, int kCells>
KVASIR_FORCE_INLINE void add_channel(const float* q, std::int64_t head_dim, const Keys (&keys)[kCells],
                                     std::int64_t channel, F32x16 (&acc)[kRows][kCells]) {
  F32x16 key[kCells];
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) key[c] = keys[c].at(channel);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const F32x16 query = broadcast(q[r * head_dim + channel]);
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) acc[r][c] = fma(query, key[c], acc[r][c]);
  }
}

// A cell's keys to be scored, and where the scores of the first row go; those of the others follow at
// kTokensPerTile.
struct KeyCell {
  const HalfCell* cell;
  float* scores;
};

// scores[row][lane] = q[row] . key, for kCells cells. q is [kRows][head_dim].
template <class Keys, int kRows, int kCells>
static void score_cells(const float* q, const KeyCell* cells, std::int32_t head_dim) {
  F32x16 acc[kRows][kCells];
  Keys keys[kCells];
  const std::byte* next[kCells];
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
    const HalfCell& cell = *cells[c].cell;
    keys[c].open(cell.widened == nullptr ? cell.data : cell.widened);
    next[c] = cell.next;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) acc[r][c] = zero();
  }
  for (std::int64_t d = 0; d < head_dim; d += 2) {
    if constexpr (Keys::kBytesPerChannel > 0) {
#pragma GCC unroll 8
      for (int c = 0; c < kCells; ++c) prefetch_into_l2(next[c] + d * Keys::kBytesPerChannel);
    }
    add_channel(q, head_dim, keys, d, acc);
    add_channel(q, head_dim, keys, d + 1, acc);
  }
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store(cells[c].scores + r * kTokensPerTile, acc[r][c]);
  }
}

// `count` cells that read alike against a strip.
template <class Keys, int kRows>
static void score_strip(const float* q, const KeyCell* cells, int count, std::int32_t head_dim) {
  constexpr int kBeside = vectors_beside(kRows);
  int c = 0;
  for (; c + kBeside <= count; c += kBeside) score_cells<Keys, kRows, kBeside>(q, cells + c, head_dim);
  for (; c < count; ++c) score_cells<Keys, kRows, 1>(q, cells + c, head_dim);
}

// The terms that add_rows adds: weights[row][key] * value[key] for keys [begin, end) of the tile.
template <class Values>
struct WeightedValues {
  const float* weights;      // [rows][kTokensPerTile]
  const float* corrections;  // [rows], of what `out` has so far
  const Values* values;      // [kCellsPerTile]; those of [begin, end) are open
  const HalfCell* cells;     // the same
  int begin;
  int end;
  std::int32_t head_dim;
};

// Asks for as many bytes of what a later step reads as kVectors vectors here take, from the same offset on.
template <class Values, int kVectors>
KVASIR_FORCE_INLINE void prefetch_values(const HalfCell& cell, std::int64_t index) {
  if constexpr (Values::kBitsPerNumber > 0) {
    constexpr int kBytes = 16 * kVectors * Values::kBitsPerNumber / 8;
    const std::int64_t begin = index * Values::kBitsPerNumber / 8;
    if (begin >= cell.next_bytes) return;
#pragma GCC unroll 4
    for (int i = 0; i < kBytes; i += 64) prefetch_into_l2(cell.next + begin + i);
  }
}

// out[row][column ...] = out * corrections[row] + the products, kVectors vectors wide; out is
// [kRows][head_dim].
template <class Values, int kRows, int kVectors>
static void add_columns(const WeightedValues<Values>& in, std::int64_t column, float* out) {
  F32x16 acc[kRows][kVectors];
  const std::int64_t head_dim = in.head_dim;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const F32x16 correction = broadcast(in.corrections[r]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = mul(load(out + r * head_dim + column + 16 * v), correction);
    }
  }
  int key = in.begin;
  while (key < in.end) {
    const int cell = key / kTokensPerCell;
    const int cell_begin = cell * kTokensPerCell;
    const int stop = in.end < cell_begin + kTokensPerCell ? in.end : cell_begin + kTokensPerCell;
    const Values& values = in.values[cell];
    for (; key < stop; ++key) {
      const std::int64_t token = key - cell_begin;
      prefetch_values<Values, kVectors>(in.cells[cell], token * head_dim + column);
      F32x16 value[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) value[v] = values.at(token, column + 16 * v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const F32x16 weight = broadcast(in.weights[r * kTokensPerTile + key]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(weight, value[v], acc[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(out + r * head_dim + column + 16 * v, acc[r][v]);
  }
}

// The last, partial vector of a head_dim that is no multiple of 16; row by row, for such heads are rare.
template <class Values>
static void add_last_columns(const WeightedValues<Values>& in, int num_rows, std::int64_t column,
                             float* out) {
  const int lanes = static_cast<int>(in.head_dim - column);
  for (int r = 0; r < num_rows; ++r) {
    float* target = out + static_cast<std::int64_t>(r) * in.head_dim + column;
    F32x16 acc = mul(load_partial(target, lanes), broadcast(in.corrections[r]));
    for (int key = in.begin; key < in.end; ++key) {
      const F32x16 value = in.values[key / kTokensPerCell].first(key % kTokensPerCell, column, lanes);
      acc = fma(broadcast(in.weights[r * kTokensPerTile + key]), value, acc);
    }
    store_partial(target, acc, lanes);
  }
}

template <class Values, int kRows>
static void add_strip(const WeightedValues<Values>& in, float* out) {
  constexpr int kBeside = vectors_beside(kRows);
  std::int64_t column = 0;
  for (; column + 16 * kBeside <= in.head_dim; column += 16 * kBeside) {
    add_columns<Values, kRows, kBeside>(in, column, out);
  }
  for (; column + 16 <= in.head_dim; column += 16) add_columns<Values, kRows, 1>(in, column, out);
  if (column < in.head_dim) add_last_columns(in, kRows, column, out);
}

// Strips of 1 to 6 rows by number.
template <class Keys>
static void score_rows(int num_rows, const float* q, const KeyCell* cells, int count, std::int32_t head_dim) {
  switch (num_rows) {
    case 1:
      return score_strip<Keys, 1>(q, cells, count, head_dim);
    case 2:
      return score_strip<Keys, 2>(q, cells, count, head_dim);
    case 3:
      return score_strip<Keys, 3>(q, cells, count, head_dim);
    case 4:
      return score_strip<Keys, 4>(q, cells, count, head_dim);
    case 5:
      return score_strip<Keys, 5>(q, cells, count, head_dim);
    default:
      return score_strip<Keys, 6>(q, cells, count, head_dim);
  }
}

template <class Values>
static void add_rows(int num_rows, const WeightedValues<Values>& in, float* out) {
  switch (num_rows) {
    case 1:
      return add_strip<Values, 1>(in, out);
    case 2:
      return add_strip<Values, 2>(in, out);
    case 3:
      return add_strip<Values, 3>(in, out);
    case 4:
      return add_strip<Values, 4>(in, out);
    case 5:
      return add_strip<Values, 5>(in, out);
    default:
      return add_strip<Values, 6>(in, out);
  }
}
