// The two matrix products of attention over one tile of 64 keys, for a strip of up to six query rows.
// Included inside an ISA's namespace and target region.
//
// Every value is one chain of fma: scores run over head_dim with keys in the lanes, outputs over the keys in
// order with head_dim in the lanes. How many rows share a strip changes no bit.

inline constexpr int kMaxRowsPerStrip = 6;
inline constexpr int kCellsPerTile = kTokensPerTile / kTokensPerCell;

// Vectors side by side in a register tile of `rows`: accumulators, one row of vectors and a broadcast must
// fit.
constexpr int vectors_beside(int rows) {
  if (rows * 4 + 4 + 1 <= kVectorRegisters) return 4;
  if (rows * 2 + 2 + 1 <= kVectorRegisters) return 2;
  return 1;
}

KVASIR_FORCE_INLINE F32x16 load_widened(const float* p) { return load(p); }
KVASIR_FORCE_INLINE F32x16 load_widened(const std::uint16_t* p) { return load_half(p); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const float* p, int n) { return load_partial(p, n); }
KVASIR_FORCE_INLINE F32x16 load_widened_partial(const std::uint16_t* p, int n) {
  return load_half_partial(p, n);
}

// K or V cells that a step of attention reads, and those that the next step will read: blocks lie far apart,
// so nothing but a prefetch announces them. Float32 cells are copies that L1 or L2 holds, and have no `next`.
template <typename Element>
struct CellStream {
  const Element* const* cells;
  const Element* const* next;

  CellStream from(int cell) const { return {cells + cell, next + cell}; }
};

// Asks for the kElements of the next step's cell that lie where this step's do.
template <typename Element, int kElements>
KVASIR_FORCE_INLINE void prefetch_next(const CellStream<Element>& stream, int cell, std::int64_t offset) {
  if constexpr (sizeof(Element) == 2) {
#pragma GCC unroll 4
    for (int i = 0; i < kElements; i += 32) __builtin_prefetch(stream.next[cell] + offset + i);
  }
}

// scores[row][16 * cell + lane] = q[row] . key, for kCells cells of [head_dim][16].
// q is [kRows][head_dim], scores is [kRows][kTokensPerTile].
template <typename Element, int kRows, int kCells>
static void score_cells(const float* q, const CellStream<Element>& stream, std::int32_t head_dim,
                        float* scores) {
  F32x16 acc[kRows][kCells];
  const Element* keys[kCells];
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) keys[c] = stream.cells[c];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) acc[r][c] = zero();
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    if (d % 2 == 0) {
#pragma GCC unroll 8
      for (int c = 0; c < kCells; ++c) prefetch_next<Element, 32>(stream, c, d * kTokensPerCell);
    }
    F32x16 key[kCells];
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) key[c] = load_widened(keys[c] + d * kTokensPerCell);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32x16 query = broadcast(q[r * std::int64_t{head_dim} + d]);
#pragma GCC unroll 8
      for (int c = 0; c < kCells; ++c) acc[r][c] = fma(query, key[c], acc[r][c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) store(scores + r * kTokensPerTile + c * kTokensPerCell, acc[r][c]);
  }
}

// Cells [first, first + count) of a tile against a strip.
template <typename Element, int kRows>
static void score_strip(const float* q, const CellStream<Element>& stream, int first, int count,
                        std::int32_t head_dim, float* scores) {
  constexpr int kBeside = vectors_beside(kRows);
  int c = first;
  for (; c + kBeside <= first + count; c += kBeside) {
    score_cells<Element, kRows, kBeside>(q, stream.from(c), head_dim, scores + c * kTokensPerCell);
  }
  for (; c < first + count; ++c) {
    score_cells<Element, kRows, 1>(q, stream.from(c), head_dim, scores + c * kTokensPerCell);
  }
}

// What add_rows adds: weights[row][key] * value[key] for keys [begin, end) of the tile.
template <typename Element>
struct WeightedValues {
  const float* weights;        // [rows][kTokensPerTile]
  const float* corrections;    // [rows], of what `out` has so far
  CellStream<Element> stream;  // [kCellsPerTile] of [16][head_dim]; those of [begin, end) are not null
  int begin;
  int end;
  std::int32_t head_dim;
};

// out[row][column ...] = out * corrections[row] + the products, kVectors vectors wide; out is
// [kRows][head_dim].
template <typename Element, int kRows, int kVectors>
static void add_columns(const WeightedValues<Element>& in, std::int64_t column, float* out) {
  F32x16 acc[kRows][kVectors];
  const std::int64_t head_dim = in.head_dim;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const F32x16 correction = broadcast(in.corrections[r]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      acc[r][v] = mul(load(out + r * head_dim + column + 16 * v), correction);
  }
  int key = in.begin;
  while (key < in.end) {
    const int cell = key / kTokensPerCell;
    const int cell_begin = cell * kTokensPerCell;
    const int stop = in.end < cell_begin + kTokensPerCell ? in.end : cell_begin + kTokensPerCell;
    const Element* values = in.stream.cells[cell] + (key - cell_begin) * head_dim + column;
    for (; key < stop; ++key, values += head_dim) {
      prefetch_next<Element, 16 * kVectors>(in.stream, cell, values - in.stream.cells[cell]);
      F32x16 value[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) value[v] = load_widened(values + 16 * v);
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
template <typename Element>
static void add_last_columns(const WeightedValues<Element>& in, int num_rows, std::int64_t column,
                             float* out) {
  const int lanes = static_cast<int>(in.head_dim - column);
  for (int r = 0; r < num_rows; ++r) {
    float* target = out + static_cast<std::int64_t>(r) * in.head_dim + column;
    F32x16 acc = mul(load_partial(target, lanes), broadcast(in.corrections[r]));
    for (int key = in.begin; key < in.end; ++key) {
      const Element* values =
          in.stream.cells[key / kTokensPerCell] + (key % kTokensPerCell) * in.head_dim + column;
      acc = fma(broadcast(in.weights[r * kTokensPerTile + key]), load_widened_partial(values, lanes), acc);
    }
    store_partial(target, acc, lanes);
  }
}

template <typename Element, int kRows>
static void add_strip(const WeightedValues<Element>& in, float* out) {
  constexpr int kBeside = vectors_beside(kRows);
  std::int64_t column = 0;
  for (; column + 16 * kBeside <= in.head_dim; column += 16 * kBeside) {
    add_columns<Element, kRows, kBeside>(in, column, out);
  }
  for (; column + 16 <= in.head_dim; column += 16) add_columns<Element, kRows, 1>(in, column, out);
  if (column < in.head_dim) add_last_columns(in, kRows, column, out);
}

// Strips of 1 to 6 rows by number.
template <typename Element>
static void score_rows(int num_rows, const float* q, const CellStream<Element>& stream, int first, int count,
                       std::int32_t head_dim, float* scores) {
  switch (num_rows) {
    case 1:
      return score_strip<Element, 1>(q, stream, first, count, head_dim, scores);
    case 2:
      return score_strip<Element, 2>(q, stream, first, count, head_dim, scores);
    case 3:
      return score_strip<Element, 3>(q, stream, first, count, head_dim, scores);
    case 4:
      return score_strip<Element, 4>(q, stream, first, count, head_dim, scores);
    case 5:
      return score_strip<Element, 5>(q, stream, first, count, head_dim, scores);
    default:
      return score_strip<Element, 6>(q, stream, first, count, head_dim, scores);
  }
}

template <typename Element>
static void add_rows(int num_rows, const WeightedValues<Element>& in, float* out) {
  switch (num_rows) {
    case 1:
      return add_strip<Element, 1>(in, out);
    case 2:
      return add_strip<Element, 2>(in, out);
    case 3:
      return add_strip<Element, 3>(in, out);
    case 4:
      return add_strip<Element, 4>(in, out);
    case 5:
      return add_strip<Element, 5>(in, out);
    default:
      return add_strip<Element, 6>(in, out);
  }
}
