// Attention of query rows over one chunk of a paged cache. Included inside an ISA's namespace and target
// region.
//
// Rows go in blocks, keys in tiles of 64 at absolute positions; a tile keeps one maximum and four block sums
// per row, and the softmax is corrected once per tile (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018; Dao et al., "FlashAttention", 2022). A row's numbers depend on its position and its
// visible keys alone: a hidden key gets the weight exp(-inf) = 0 and its value is not read for that row, and
// a tile without a visible key multiplies by exactly 1.

#include "kernels/generic/attention_tile-inl.h"
#include "kernels/generic/kv_convert-inl.h"

inline constexpr int kMaxRowsPerBlock = 64;
inline constexpr int kTilesPerChunk = kTokensPerChunk / kTokensPerTile;

// How each format is read.
struct FormatTraits {
  HalfCell keys, values;  // without data
  std::int64_t key_bytes;
};
struct FormatTable {
  FormatTraits of[kv::kNumKvFormats];

  const FormatTraits& operator[](KvFormat format) const { return of[static_cast<int>(format)]; }
  void fill(std::int32_t head_dim) {
    for (int i = 0; i < kv::kNumKvFormats; ++i) {
      const auto format = static_cast<KvFormat>(i);
      const kv::KvCodes codes = kv::codes_of(format);
      of[i] = {{nullptr, nullptr, codes.keys, kv::is_rotated(codes.keys)},
               {nullptr, nullptr, codes.values, kv::is_rotated(codes.values)},
               kv::key_bytes(format, head_dim)};
    }
  }
};

// The working set of one block of rows: on the stack, and in L1 or L2 for the usual head sizes.
struct AttentionBlock {
  const AttentionArgs* args;
  FormatTable formats;
  std::int64_t first_row;
  int num_rows;
  bool widens;                              // cells are widened to float32 first
  bool has_rotated_q;                       // rotated_q is written
  bool has_rotated_out;                     // rotated_out is in use
  bool saw_rotated[kMaxRowsPerBlock];       // of a row: has a share in it
  alignas(64) float max[kMaxRowsPerBlock];  // running, -inf before the first visible key
  alignas(64) float sum[kMaxRowsPerBlock];
  alignas(64) float reference[kMaxRowsPerBlock];                 // max, or 0 where that is still -inf
  alignas(64) float correction[kMaxRowsPerBlock];                // exp(max before the tile - reference)
  alignas(64) float tile_max[kTilesPerChunk][kMaxRowsPerBlock];  // running max after each tile
  alignas(64) float tile_sums[kTilesPerChunk][kMaxRowsPerBlock][kCellsPerTile];  // relative to tile_max
  alignas(64) float scores[kMaxRowsPerBlock * kTokensPerTile];    // [row][key], then the softmax weights
  alignas(64) float q[kMaxRowsPerBlock * kMaxHeadDim];            // [row][head_dim], scaled
  alignas(64) float rotated_q[kMaxRowsPerBlock * kMaxHeadDim];    // the same for rotated keys
  alignas(64) float rotated_out[kMaxRowsPerBlock * kMaxHeadDim];  // the share of rotated values
  alignas(64) float widened[kTokensPerTile * kMaxHeadDim];        // K, then V, of the current tile
};

// Keys [begin, end) of a tile.
struct KeyRange {
  int begin;
  int end;
};

KVASIR_FORCE_INLINE int smaller(int a, int b) { return a < b ? a : b; }
KVASIR_FORCE_INLINE int larger(int a, int b) { return a > b ? a : b; }

// The keys of the tile at `tile_begin` that the query at `position` sees, holes aside.
static KeyRange visible_keys(const AttentionArgs& args, std::int32_t position, std::int32_t tile_begin) {
  const int first = args.window > 0 ? larger(position - args.window + 1 - tile_begin, 0) : 0;
  const int end = smaller(smaller(position + 1, args.key_end) - tile_begin, kTokensPerTile);
  return {smaller(first, kTokensPerTile), larger(end, 0)};
}

static std::int32_t position_of(const AttentionArgs& args, std::int64_t row) {
  return args.first_position + static_cast<std::int32_t>(row / args.group_size);
}

// Cuts a block's rows into strips of nearly equal height: strip i is [strip_begin(n, i), strip_begin(n, i +
// 1)).
static int num_strips(int num_rows) { return (num_rows + kMaxRowsPerStrip - 1) / kMaxRowsPerStrip; }
static int strip_begin(int num_rows, int strip) { return num_rows * strip / num_strips(num_rows); }

// The keys and the values of one tile's cells.
struct Tile {
  HalfCell keys[kCellsPerTile];
  HalfCell values[kCellsPerTile];
};

static kv::KvCell find_cell(const AttentionArgs& args, std::int32_t position, std::int32_t end) {
  return position < end ? args.cells.find(position / kTokensPerCell) : kv::KvCell{};
}

// The tile at tile_begin. The next one's cells, which may belong to the next chunk, are there as far as they
// exist; for a prefetch. Others are replaced by the present ones, which the caches hold.
static Tile find_tile(const AttentionArgs& args, const FormatTable& formats, std::int32_t tile_begin,
                      bool announces) {
  Tile tile;
  for (int c = 0; c < kCellsPerTile; ++c) {
    const std::int32_t position = tile_begin + c * kTokensPerCell;
    const kv::KvCell cell = find_cell(args, position, args.key_end);
    kv::KvCell next;
    if (announces) next = find_cell(args, position + kTokensPerTile, args.prefetch_end);
    if (next.data == nullptr) next = cell;
    const FormatTraits& format = formats[cell.format];
    tile.keys[c] = format.keys;
    tile.values[c] = format.values;
    if (cell.data == nullptr) continue;
    tile.keys[c].data = cell.data;
    tile.keys[c].next = next.data;
    tile.values[c].data = cell.data + format.key_bytes;
    tile.values[c].next = next.data + formats[next.format].key_bytes;
  }
  return tile;
}

// Copies a tile's halves as float32, so that many strips share one conversion. `read` is read_keys or
// read_values.
template <class Read>
static void widen(const AttentionArgs& args, Read read, float* widened, HalfCell (&cells)[kCellsPerTile]) {
  for (int c = 0; c < kCellsPerTile; ++c, widened += std::int64_t{kTokensPerCell} * args.head_dim) {
    if (cells[c].data == nullptr || cells[c].code == kv::KvCode::kF32) continue;
    read(cells[c].code, cells[c].data, args.head_dim, widened);
    cells[c].data = reinterpret_cast<const std::byte*>(widened);
    cells[c].code = kv::KvCode::kF32;
  }
}

static void start_block(AttentionBlock& block) {
  const AttentionArgs& args = *block.args;
  for (int r = 0; r < kMaxRowsPerBlock; ++r) {
    block.max[r] = -__builtin_inff();
    block.sum[r] = 0.0f;
    block.saw_rotated[r] = false;
  }
  for (int r = 0; r < block.num_rows; ++r) {
    const std::int64_t row = block.first_row + r;
    const float* head =
        args.q + (row / args.group_size) * args.q_stride + (row % args.group_size) * args.head_dim;
    scale(head, args.scale, args.head_dim, block.q + std::int64_t{r} * args.head_dim);
  }
  float* out = args.out + block.first_row * args.head_dim;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(block.num_rows) * args.head_dim; ++i) out[i] = 0.0f;
}

// scores = cap * tanh(scores / cap).
static void cap_scores(float* scores, int num_rows, float cap) {
  const F32x16 limit = broadcast(cap), one = broadcast(1.0f);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(num_rows) * kTokensPerTile; i += 16) {
    const F32x16 x = div(load(scores + i), limit);
    const F32x16 e = exp(mul(broadcast(-2.0f), abs(x)));
    const F32x16 magnitude = mul(limit, div(sub(one, e), add(one, e)));
    store(scores + i, select(less(x, zero()), sub(zero(), magnitude), magnitude));
  }
}

// Gives the keys a row does not see the score -inf.
static void hide_scores(AttentionBlock& block, std::int32_t tile_begin, const Tile& tile) {
  const F32x16 hidden = broadcast(-__builtin_inff());
  for (int r = 0; r < block.num_rows; ++r) {
    const KeyRange keys =
        visible_keys(*block.args, position_of(*block.args, block.first_row + r), tile_begin);
    for (int c = 0; c < kCellsPerTile; ++c) {
      const int begin = larger(keys.begin - c * kTokensPerCell, 0);
      const int end = smaller(keys.end - c * kTokensPerCell, kTokensPerCell);
      float* scores = block.scores + r * kTokensPerTile + c * kTokensPerCell;
      if (begin >= end || tile.keys[c].data == nullptr) {
        store(scores, hidden);
      } else {
        store(scores, select(and_not(first_lanes(end), first_lanes(begin)), load(scores), hidden));
      }
    }
  }
}

// The queries as rotated keys want them.
static const float* rotated_queries(AttentionBlock& block) {
  const std::int32_t head_dim = block.args->head_dim;
  for (int r = 0; !block.has_rotated_q && r < block.num_rows; ++r) {
    float* row = block.rotated_q + std::int64_t{r} * head_dim;
    __builtin_memcpy(row, block.q + std::int64_t{r} * head_dim,
                     static_cast<std::size_t>(head_dim) * sizeof(float));
    rotate_row(row, head_dim);
  }
  block.has_rotated_q = true;
  return block.rotated_q;
}

template <class Keys>
static void score_run(AttentionBlock& block, const HalfCell* cells, int first, int count) {
  const std::int32_t head_dim = block.args->head_dim;
  const float* q = cells[first].is_rotated ? rotated_queries(block) : block.q;
  for (int strip = 0; strip < num_strips(block.num_rows); ++strip) {
    const int begin = strip_begin(block.num_rows, strip);
    const int height = strip_begin(block.num_rows, strip + 1) - begin;
    score_rows<Keys>(height, q + static_cast<std::int64_t>(begin) * head_dim, cells + first, count, head_dim,
                     block.scores + begin * kTokensPerTile + first * kTokensPerCell);
  }
}

// Scores of every row against `count` cells from `first`, which read alike.
static void score_run(AttentionBlock& block, const HalfCell* cells, int first, int count) {
  switch (cells[first].code) {
    case kv::KvCode::kF32:
      return score_run<KeysF32>(block, cells, first, count);
    case kv::KvCode::kF16:
      return score_run<KeysF16>(block, cells, first, count);
    case kv::KvCode::k8:
      return score_run<Keys8>(block, cells, first, count);
    case kv::KvCode::k4:
      return score_run<Keys4>(block, cells, first, count);
    case kv::KvCode::k4Channel:
      return score_run<Keys4Channel>(block, cells, first, count);
    case kv::KvCode::k3:
      return score_run<Keys3>(block, cells, first, count);
  }
}

// Scores of every row against the tile's visible keys; -inf for the others.
static void score_tile(AttentionBlock& block, std::int32_t tile_begin, const Tile& tile, KeyRange seen,
                       bool is_full) {
  for (int c = seen.begin / kTokensPerCell; c * kTokensPerCell < seen.end;) {
    int count = 1;
    if (tile.keys[c].data != nullptr) {
      while ((c + count) * kTokensPerCell < seen.end && tile.keys[c + count].reads_like(tile.keys[c]))
        ++count;
      score_run(block, tile.keys, c, count);
    }
    c += count;
  }
  if (block.args->softcap > 0.0f) cap_scores(block.scores, block.num_rows, block.args->softcap);
  if (!is_full) hide_scores(block, tile_begin, tile);
}

// Moves the running maxima over the tile and turns its scores into weights relative to them.
static void weigh_tile(AttentionBlock& block, int tile_index) {
  for (int r = 0; r < block.num_rows; ++r) {
    const float* scores = block.scores + r * kTokensPerTile;
    const F32x16 low = max(load(scores), load(scores + 16));
    const F32x16 high = max(load(scores + 32), load(scores + 48));
    const float of_tile = reduce_max(max(low, high));
    const float before = block.max[r];
    const float after = of_tile > before ? of_tile : before;
    const float reference = after == -__builtin_inff() ? 0.0f : after;
    block.max[r] = after;
    block.tile_max[tile_index][r] = after;
    block.reference[r] = reference;
    block.correction[r] = before - reference;
  }
  for (int r = 0; r < block.num_rows; r += 16) store(block.correction + r, exp(load(block.correction + r)));
  for (int r = 0; r < block.num_rows; ++r) {
    const F32x16 reference = broadcast(block.reference[r]);
    float* scores = block.scores + r * kTokensPerTile;
    F32x16 weights[kCellsPerTile];
    for (int c = 0; c < kCellsPerTile; ++c) {
      weights[c] = exp(sub(load(scores + c * kTokensPerCell), reference));
      store(scores + c * kTokensPerCell, weights[c]);
    }
    float* sums = block.tile_sums[tile_index][r];
    reduce_add4(weights[0], weights[1], weights[2], weights[3], sums);
    const float of_tile = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    block.sum[r] = __builtin_fmaf(block.sum[r], block.correction[r], of_tile);
  }
}

inline constexpr float kNoCorrections[kMaxRowsPerStrip] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};

// Rows [begin, end) of the block, and the keys of the tile that all of them see.
struct VisibleKeys {
  int begin, end;
  KeyRange keys;
};

// Where a share of a block's output is summed up, [row][head_dim], and whether what it has from earlier tiles
// is relative to the present maxima already.
struct Sums {
  float* of_rows;
  bool are_corrected;
};

template <class Values>
static void add_run(AttentionBlock& block, const HalfCell* cells, const VisibleKeys& seen, Sums& sums) {
  const std::int32_t head_dim = block.args->head_dim;
  Values values[kCellsPerTile];
  for (int c = seen.keys.begin / kTokensPerCell; c * kTokensPerCell < seen.keys.end; ++c) {
    values[c].open(cells[c].data, head_dim);
  }
  const int num_rows = seen.end - seen.begin;
  for (int strip = 0; strip < num_strips(num_rows); ++strip) {
    const int first = seen.begin + strip_begin(num_rows, strip);
    const int height = seen.begin + strip_begin(num_rows, strip + 1) - first;
    const WeightedValues<Values> in = {block.scores + first * kTokensPerTile,
                                       sums.are_corrected ? kNoCorrections : block.correction + first,
                                       values,
                                       cells,
                                       seen.keys.begin,
                                       seen.keys.end,
                                       head_dim};
    add_rows(height, in, sums.of_rows + static_cast<std::int64_t>(first) * head_dim);
  }
  sums.are_corrected = true;
}

// Adds the values of cells that read alike.
static void add_run(AttentionBlock& block, const HalfCell* cells, const VisibleKeys& seen, Sums& sums) {
  switch (cells[seen.keys.begin / kTokensPerCell].code) {
    case kv::KvCode::kF32:
      return add_run<ValuesF32>(block, cells, seen, sums);
    case kv::KvCode::k8:
      return add_run<Values8>(block, cells, seen, sums);
    case kv::KvCode::k4:
      return add_run<Values4>(block, cells, seen, sums);
    case kv::KvCode::k3:
      return add_run<Values3>(block, cells, seen, sums);
    default:
      return add_run<ValuesF16>(block, cells, seen, sums);
  }
}

static float* rotated_sums(AttentionBlock& block) {
  const std::int64_t size = std::int64_t{block.num_rows} * block.args->head_dim;
  for (std::int64_t i = 0; !block.has_rotated_out && i < size; ++i) block.rotated_out[i] = 0.0f;
  block.has_rotated_out = true;
  return block.rotated_out;
}

static void correct_sums(const AttentionBlock& block, const VisibleKeys& seen, const Sums& sums) {
  const std::int64_t head_dim = block.args->head_dim;
  for (int r = seen.begin; r < seen.end && !sums.are_corrected; ++r) {
    if (block.correction[r] == 1.0f) continue;
    scale(sums.of_rows + r * head_dim, block.correction[r], head_dim, sums.of_rows + r * head_dim);
  }
}

// Corrects what the rows have so far and adds the values of the keys they see.
static void add_visible(AttentionBlock& block, const HalfCell* cells, const VisibleKeys& seen) {
  Sums plain = {block.args->out + block.first_row * block.args->head_dim, false};
  Sums rotated = {block.has_rotated_out ? block.rotated_out : nullptr, false};
  for (int key = seen.keys.begin; key < seen.keys.end;) {
    int stop = (key / kTokensPerCell + 1) * kTokensPerCell;
    const HalfCell& cell = cells[key / kTokensPerCell];
    if (cell.data != nullptr) {
      while (stop < seen.keys.end && cells[stop / kTokensPerCell].reads_like(cell)) stop += kTokensPerCell;
      if (cell.is_rotated) {
        if (rotated.of_rows == nullptr) rotated.of_rows = rotated_sums(block);
        for (int r = seen.begin; r < seen.end; ++r) block.saw_rotated[r] = true;
      }
      add_run(block, cells, {seen.begin, seen.end, {key, smaller(stop, seen.keys.end)}},
              cell.is_rotated ? rotated : plain);
    }
    key = stop;
  }
  correct_sums(block, seen, plain);
  if (rotated.of_rows != nullptr) correct_sums(block, seen, rotated);
}

// out = out * correction + weights x values.
static void add_tile(AttentionBlock& block, std::int32_t tile_begin, const Tile& tile, bool is_full) {
  const AttentionArgs& args = *block.args;
  if (is_full) return add_visible(block, tile.values, {0, block.num_rows, {0, kTokensPerTile}});
  for (int r = 0; r < block.num_rows;) {
    const std::int64_t token = (block.first_row + r) / args.group_size;
    const int end =
        smaller(static_cast<int>((token + 1) * args.group_size - block.first_row), block.num_rows);
    add_visible(block, tile.values,
                {r, end, visible_keys(args, position_of(args, block.first_row + r), tile_begin)});
    r = end;
  }
}

static void attend_tile(AttentionBlock& block, std::int32_t tile_begin) {
  const AttentionArgs& args = *block.args;
  Tile tile = find_tile(args, block.formats, tile_begin, !block.widens);
  // Later queries see later keys, earlier queries reach further back.
  const KeyRange of_first = visible_keys(args, position_of(args, block.first_row), tile_begin);
  const KeyRange of_last =
      visible_keys(args, position_of(args, block.first_row + block.num_rows - 1), tile_begin);
  bool is_full = of_first.end == kTokensPerTile && of_last.begin == 0;
  for (int c = 0; c < kCellsPerTile; ++c) is_full = is_full && tile.keys[c].data != nullptr;

  const KeyRange seen = {of_first.begin, of_last.end};
  using ReadHalf = void (*)(kv::KvCode, const std::byte*, std::int32_t, float*);
  if (block.widens) widen<ReadHalf>(args, read_keys, block.widened, tile.keys);
  score_tile(block, tile_begin, tile, seen, is_full);
  weigh_tile(block, (tile_begin - args.key_begin) / kTokensPerTile);
  if (block.widens) widen<ReadHalf>(args, read_values, block.widened, tile.values);
  add_tile(block, tile_begin, tile, is_full);
}

// Turns the share of rotated values back and adds it: H is its own inverse.
static void add_rotated_out(AttentionBlock& block) {
  const std::int32_t head_dim = block.args->head_dim;
  for (int r = 0; r < block.num_rows; ++r) {
    float* row = block.rotated_out + std::int64_t{r} * head_dim;
    float* out = block.args->out + (block.first_row + r) * head_dim;
    if (!block.saw_rotated[r]) continue;
    rotate_row(row, head_dim);
    add(out, row, head_dim, out);
  }
}

// block_sums relative to the row's final maximum; 0 for tiles the block never visited.
static void export_block_sums(AttentionBlock& block, int first_tile, int end_tile) {
  constexpr int kBlocksPerChunk = kTokensPerChunk / kTokensPerCell;
  float* block_sums = block.args->block_sums + block.first_row * kBlocksPerChunk;
  for (int i = 0; i < block.num_rows * kBlocksPerChunk; ++i) block_sums[i] = 0.0f;
  for (int tile = first_tile; tile < end_tile; ++tile) {
    alignas(64) float factors[kMaxRowsPerBlock];
    for (int r = 0; r < block.num_rows; ++r) {
      factors[r] = block.max[r] == -__builtin_inff() ? 0.0f : block.tile_max[tile][r] - block.max[r];
    }
    for (int r = 0; r < block.num_rows; r += 16) store(factors + r, exp(load(factors + r)));
    for (int r = 0; r < block.num_rows; ++r) {
      for (int c = 0; c < kCellsPerTile; ++c) {
        block_sums[r * kBlocksPerChunk + tile * kCellsPerTile + c] = block.tile_sums[tile][r][c] * factors[r];
      }
    }
  }
}

static void attend_block(AttentionBlock& block) {
  const AttentionArgs& args = *block.args;
  start_block(block);
  const std::int32_t first_position = position_of(args, block.first_row);
  const std::int32_t last_position = position_of(args, block.first_row + block.num_rows - 1);
  const std::int32_t begin =
      args.window > 0 ? larger(args.key_begin, first_position - args.window + 1) : args.key_begin;
  const std::int32_t end = smaller(args.key_end, last_position + 1);
  const int first_tile = (begin - args.key_begin) / kTokensPerTile;
  const int end_tile = larger((end - args.key_begin + kTokensPerTile - 1) / kTokensPerTile, first_tile);
  for (int tile = first_tile; tile < end_tile; ++tile) {
    attend_tile(block, args.key_begin + tile * kTokensPerTile);
  }
  if (block.has_rotated_out) add_rotated_out(block);
  for (int r = 0; r < block.num_rows; ++r) {
    args.max[block.first_row + r] = block.max[r];
    args.sum[block.first_row + r] = block.sum[r];
  }
  if (args.block_sums != nullptr) export_block_sums(block, first_tile, end_tile);
}

void attention(const AttentionArgs& args) {
  AttentionBlock block;
  block.args = &args;
  block.formats.fill(args.head_dim);
  const std::int64_t num_rows = static_cast<std::int64_t>(args.num_query_tokens) * args.group_size;
  for (block.first_row = 0; block.first_row < num_rows; block.first_row += kMaxRowsPerBlock) {
    const std::int64_t rest = num_rows - block.first_row;
    block.num_rows = rest < kMaxRowsPerBlock ? static_cast<int>(rest) : kMaxRowsPerBlock;
    block.widens = num_strips(block.num_rows) > 2;
    block.has_rotated_q = false;
    block.has_rotated_out = false;
    attend_block(block);
  }
}
