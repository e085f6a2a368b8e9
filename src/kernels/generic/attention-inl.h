// Attention of query rows over one chunk of a paged cache. Included inside an ISA's namespace and target
// region.
//
// Rows go in blocks, keys in tiles of 64 at absolute positions; a tile keeps one maximum and four block sums
// per row, and the softmax is corrected once per tile (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018; Dao et al., "FlashAttention", 2022). A row's numbers depend on its position and its
// visible keys alone: a hidden key gets the weight exp(-inf) = 0 and its value is not read for that row, and
// a tile without a visible key multiplies by exactly 1.

#include "kernels/generic/attention_tile-inl.h"

inline constexpr int kMaxRowsPerBlock = 64;
inline constexpr int kTilesPerChunk = kTokensPerChunk / kTokensPerTile;

// The working set of one block of rows: on the stack, and in L1 or L2 for the usual head sizes.
struct AttentionBlock {
  const AttentionArgs* args;
  std::int64_t first_row;
  int num_rows;
  bool widens;                              // cells are widened to float32 first
  alignas(64) float max[kMaxRowsPerBlock];  // running, -inf before the first visible key
  alignas(64) float sum[kMaxRowsPerBlock];
  alignas(64) float reference[kMaxRowsPerBlock];                 // max, or 0 where that is still -inf
  alignas(64) float correction[kMaxRowsPerBlock];                // exp(max before the tile - reference)
  alignas(64) float tile_max[kTilesPerChunk][kMaxRowsPerBlock];  // running max after each tile
  alignas(64) float tile_sums[kTilesPerChunk][kMaxRowsPerBlock][kCellsPerTile];  // relative to tile_max
  alignas(64) float scores[kMaxRowsPerBlock * kTokensPerTile];  // [row][key], then the softmax weights
  alignas(64) float q[kMaxRowsPerBlock * kMaxHeadDim];          // [row][head_dim], scaled
  alignas(64) float widened[kTokensPerTile * kMaxHeadDim];      // K, then V, of the current tile
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

// One tile's K or V cells; null where a block is missing or lies past key_end.
template <typename Element>
struct TileCells {
  const Element* cells[kCellsPerTile];
};

template <typename Element>
static TileCells<Element> find_cells(const AttentionArgs& args, std::int32_t tile_begin,
                                     std::int64_t offset) {
  TileCells<Element> tile;
  for (int c = 0; c < kCellsPerTile; ++c) {
    const std::int32_t position = tile_begin + c * kTokensPerCell;
    const std::byte* block = position < args.key_end ? args.blocks[position / kTokensPerCell] : nullptr;
    tile.cells[c] = block == nullptr ? nullptr : reinterpret_cast<const Element*>(block + offset);
  }
  return tile;
}

// The cells of the tile at next_begin, which may belong to the next chunk, as far as they exist; for a
// prefetch. Others are replaced by the present ones, which the caches hold.
template <typename Element>
static TileCells<Element> next_cells(const AttentionArgs& args, std::int32_t next_begin, std::int64_t offset,
                                     const TileCells<Element>& present) {
  TileCells<Element> tile = present;
  for (int c = 0; c < kCellsPerTile; ++c) {
    const std::int32_t position = next_begin + c * kTokensPerCell;
    if (position >= args.prefetch_end) break;
    const std::byte* block = args.blocks[position / kTokensPerCell];
    if (block != nullptr) tile.cells[c] = reinterpret_cast<const Element*>(block + offset);
  }
  return tile;
}

// Copies the tile's cells as float32, so that many strips share one conversion.
template <typename Element>
static TileCells<float> widen(const TileCells<Element>& tile, std::int32_t head_dim, float* widened) {
  TileCells<float> result;
  const std::int64_t cell_size = static_cast<std::int64_t>(kTokensPerCell) * head_dim;
  for (int c = 0; c < kCellsPerTile; ++c) {
    result.cells[c] = nullptr;
    if (tile.cells[c] == nullptr) continue;
    float* target = widened + c * cell_size;
    for (std::int64_t i = 0; i < cell_size; i += 16) store(target + i, load_widened(tile.cells[c] + i));
    result.cells[c] = target;
  }
  return result;
}

static void start_block(AttentionBlock& block) {
  const AttentionArgs& args = *block.args;
  for (int r = 0; r < kMaxRowsPerBlock; ++r) {
    block.max[r] = -__builtin_inff();
    block.sum[r] = 0.0f;
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
template <typename Element>
static void hide_scores(AttentionBlock& block, std::int32_t tile_begin, const TileCells<Element>& tile) {
  const F32x16 hidden = broadcast(-__builtin_inff());
  for (int r = 0; r < block.num_rows; ++r) {
    const KeyRange keys =
        visible_keys(*block.args, position_of(*block.args, block.first_row + r), tile_begin);
    for (int c = 0; c < kCellsPerTile; ++c) {
      const int begin = larger(keys.begin - c * kTokensPerCell, 0);
      const int end = smaller(keys.end - c * kTokensPerCell, kTokensPerCell);
      float* scores = block.scores + r * kTokensPerTile + c * kTokensPerCell;
      if (begin >= end || tile.cells[c] == nullptr) {
        store(scores, hidden);
      } else {
        store(scores, select(and_not(first_lanes(end), first_lanes(begin)), load(scores), hidden));
      }
    }
  }
}

// Scores of every row against the tile's visible keys; -inf for the others.
template <typename Element>
static void score_tile(AttentionBlock& block, std::int32_t tile_begin, const TileCells<Element>& tile,
                       const TileCells<Element>& next, KeyRange seen, bool is_full) {
  const AttentionArgs& args = *block.args;
  for (int c = seen.begin / kTokensPerCell; c * kTokensPerCell < seen.end;) {
    if (tile.cells[c] == nullptr) {
      ++c;
      continue;
    }
    int count = 1;
    while ((c + count) * kTokensPerCell < seen.end && tile.cells[c + count] != nullptr) ++count;
    for (int strip = 0; strip < num_strips(block.num_rows); ++strip) {
      const int begin = strip_begin(block.num_rows, strip);
      const int height = strip_begin(block.num_rows, strip + 1) - begin;
      score_rows(height, block.q + static_cast<std::int64_t>(begin) * args.head_dim,
                 CellStream<Element>{tile.cells, next.cells}, c, count, args.head_dim,
                 block.scores + begin * kTokensPerTile);
    }
    c += count;
  }
  if (args.softcap > 0.0f) cap_scores(block.scores, block.num_rows, args.softcap);
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

// Corrects what rows [begin, end) of the block, all of one query token, have so far and adds the values of
// the keys they see. Where they see none, nothing needs correction.
template <typename Element>
static void add_visible(AttentionBlock& block, const TileCells<Element>& tile, const TileCells<Element>& next,
                        KeyRange keys, int begin, int end) {
  const AttentionArgs& args = *block.args;
  bool is_corrected = false;
  for (int key = keys.begin; key < keys.end;) {
    int stop = (key / kTokensPerCell + 1) * kTokensPerCell;
    if (tile.cells[key / kTokensPerCell] != nullptr) {
      while (stop < keys.end && tile.cells[stop / kTokensPerCell] != nullptr) stop += kTokensPerCell;
      for (int strip = 0; strip < num_strips(end - begin); ++strip) {
        const int first = begin + strip_begin(end - begin, strip);
        const int height = begin + strip_begin(end - begin, strip + 1) - first;
        const WeightedValues<Element> values = {block.scores + first * kTokensPerTile,
                                                is_corrected ? kNoCorrections : block.correction + first,
                                                {tile.cells, next.cells},
                                                key,
                                                smaller(stop, keys.end),
                                                args.head_dim};
        add_rows(height, values, args.out + (block.first_row + first) * args.head_dim);
      }
      is_corrected = true;
    }
    key = stop;
  }
}

// out = out * correction + weights x values.
template <typename Element>
static void add_tile(AttentionBlock& block, std::int32_t tile_begin, const TileCells<Element>& tile,
                     const TileCells<Element>& next, bool is_full) {
  const AttentionArgs& args = *block.args;
  if (is_full) return add_visible(block, tile, next, {0, kTokensPerTile}, 0, block.num_rows);
  for (int r = 0; r < block.num_rows;) {
    const std::int64_t token = (block.first_row + r) / args.group_size;
    const int end =
        smaller(static_cast<int>((token + 1) * args.group_size - block.first_row), block.num_rows);
    add_visible(block, tile, next, visible_keys(args, position_of(args, block.first_row + r), tile_begin), r,
                end);
    r = end;
  }
}

template <typename Element>
static void attend_tile(AttentionBlock& block, std::int32_t tile_begin) {
  const AttentionArgs& args = *block.args;
  const TileCells<Element> keys = find_cells<Element>(args, tile_begin, args.k_offset);
  const TileCells<Element> values = find_cells<Element>(args, tile_begin, args.v_offset);
  // Later queries see later keys, earlier queries reach further back.
  const KeyRange of_first = visible_keys(args, position_of(args, block.first_row), tile_begin);
  const KeyRange of_last =
      visible_keys(args, position_of(args, block.first_row + block.num_rows - 1), tile_begin);
  bool is_full = of_first.end == kTokensPerTile && of_last.begin == 0;
  for (int c = 0; c < kCellsPerTile; ++c) is_full = is_full && keys.cells[c] != nullptr;

  const KeyRange seen = {of_first.begin, of_last.end};
  const int tile_index = (tile_begin - args.key_begin) / kTokensPerTile;
  if (block.widens) {
    const TileCells<float> wide_keys = widen(keys, args.head_dim, block.widened);
    score_tile(block, tile_begin, wide_keys, wide_keys, seen, is_full);
    weigh_tile(block, tile_index);
    const TileCells<float> wide_values = widen(values, args.head_dim, block.widened);
    add_tile(block, tile_begin, wide_values, wide_values, is_full);
  } else {
    const std::int32_t next_begin = tile_begin + kTokensPerTile;
    score_tile(block, tile_begin, keys, next_cells(args, next_begin, args.k_offset, keys), seen, is_full);
    weigh_tile(block, tile_index);
    add_tile(block, tile_begin, values, next_cells(args, next_begin, args.v_offset, values), is_full);
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

template <typename Element>
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
    attend_tile<Element>(block, args.key_begin + tile * kTokensPerTile);
  }
  for (int r = 0; r < block.num_rows; ++r) {
    args.max[block.first_row + r] = block.max[r];
    args.sum[block.first_row + r] = block.sum[r];
  }
  if (args.block_sums != nullptr) export_block_sums(block, first_tile, end_tile);
}

template <typename Element>
static void attend(const AttentionArgs& args) {
  AttentionBlock block;
  block.args = &args;
  const std::int64_t num_rows = static_cast<std::int64_t>(args.num_query_tokens) * args.group_size;
  for (block.first_row = 0; block.first_row < num_rows; block.first_row += kMaxRowsPerBlock) {
    const std::int64_t rest = num_rows - block.first_row;
    block.num_rows = rest < kMaxRowsPerBlock ? static_cast<int>(rest) : kMaxRowsPerBlock;
    block.widens = sizeof(Element) == 2 && num_strips(block.num_rows) > 2;
    attend_block<Element>(block);
  }
}

void attention(const AttentionArgs& args) {
  if (args.format == KvFormat::kF16) {
    attend<std::uint16_t>(args);
  } else {
    attend<float>(args);
  }
}
