// Attention of query rows over one chunk of a paged cache. Included inside an ISA's namespace and target
// region.
//
// Rows go in blocks, keys in tiles of 64 at absolute positions; a tile keeps one maximum and four block sums
// per row, and the softmax is corrected once per tile (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018; Dao et al., "FlashAttention", 2022). A row's numbers depend on its position and its
// visible keys alone: a hidden key gets the weight exp(-inf) = 0 and its value is not read for that row, and
// a tile without a visible key multiplies by exactly 1.

#include "kernels/generic/attention_block-inl.h"

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
static void hide_scores(const AttentionBlock& block, const Tile& tile) {
  const F32x16 hidden = broadcast(-__builtin_inff());
  for (int r = 0; r < block.num_rows; ++r) {
    const KeyRange keys =
        visible_keys(*block.args, position_of(*block.args, block.first_row + r), tile.begin);
    for (int c = 0; c < kCellsPerTile; ++c) {
      const int begin = larger(keys.begin - c * kTokensPerCell, 0);
      const int end = smaller(keys.end - c * kTokensPerCell, kTokensPerCell);
      float* scores = tile.scores + r * kTokensPerTile + c * kTokensPerCell;
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

template <class Keys, ScaleOf kScaleOf>
static void score_alike(AttentionBlock& block, const KeyCell* cells, int count) {
  const std::int32_t head_dim = block.args->head_dim;
  const float* q = cells[0].cell->is_rotated ? rotated_queries(block) : block.q;
  for (int strip = 0; strip < num_strips(block.num_rows); ++strip) {
    const int begin = strip_begin(block.num_rows, strip);
    const int height = strip_begin(block.num_rows, strip + 1) - begin;
    KeyCell of_strip[kTilesPerChunk * kCellsPerTile];
    for (int i = 0; i < count; ++i) of_strip[i] = {cells[i].cell, cells[i].scores + begin * kTokensPerTile};
    score_rows<Keys, kScaleOf>(height, q + static_cast<std::int64_t>(begin) * head_dim, of_strip, count,
                               head_dim);
  }
}

// Scores of every row against `count` cells that read alike.
static void score_alike(AttentionBlock& block, const KeyCell* cells, int count) {
  const kv::KvCode code = cells[0].cell->code;
  if (cells[0].cell->widened != nullptr) {
    if (scale_of(code) == ScaleOf::kGroup) return score_alike<KeysF32, ScaleOf::kGroup>(block, cells, count);
    if (scale_of(code) == ScaleOf::kToken) return score_alike<KeysF32, ScaleOf::kToken>(block, cells, count);
    return score_alike<KeysF32, ScaleOf::kNothing>(block, cells, count);
  }
  switch (code) {
    case kv::KvCode::kF32:
      return score_alike<KeysF32, ScaleOf::kNothing>(block, cells, count);
    case kv::KvCode::kF16:
      return score_alike<KeysF16, ScaleOf::kNothing>(block, cells, count);
    case kv::KvCode::k8:
      return score_alike<Keys8, ScaleOf::kToken>(block, cells, count);
    case kv::KvCode::k4:
      return score_alike<Keys4, ScaleOf::kGroup>(block, cells, count);
    case kv::KvCode::k4Channel:
      return score_alike<Keys4Channel, ScaleOf::kNothing>(block, cells, count);
    case kv::KvCode::k3Channel:
      return score_alike<Keys3Channel, ScaleOf::kNothing>(block, cells, count);
    case kv::KvCode::k3:
      return score_alike<Keys3, ScaleOf::kGroup>(block, cells, count);
    case kv::KvCode::kMean:
      return score_alike<KeysMean, ScaleOf::kToken>(block, cells, count);
    case kv::KvCode::k2:  // of values only
    case kv::KvCode::kNone:
      return;
  }
}

// Scores of every row against the visible keys of a span of tiles; -inf for the others. A score is a chain of
// its own, so it does not matter which cells are scored together.
static void score_span(AttentionBlock& block, Tile* tiles, int num_tiles) {
  constexpr int kMaxCells = kTilesPerChunk * kCellsPerTile;
  KeyCell alike[kv::kNumKvCodes][kMaxCells];
  int num_alike[kv::kNumKvCodes] = {};
  for (int t = 0; t < num_tiles; ++t) {
    const Tile& tile = tiles[t];
    for (int c = tile.seen.begin / kTokensPerCell; c * kTokensPerCell < tile.seen.end; ++c) {
      const HalfCell& cell = tile.keys[c];
      if (cell.data == nullptr) continue;
      const auto code = static_cast<std::size_t>(cell.code);
      alike[code][num_alike[code]++] = {&cell, tile.scores + c * kTokensPerCell};
    }
  }
  for (int code = 0; code < kv::kNumKvCodes; ++code) {
    if (num_alike[code] > 0) score_alike(block, alike[code], num_alike[code]);
  }
  for (int t = 0; t < num_tiles; ++t) {
    if (block.args->softcap > 0.0f) cap_scores(tiles[t].scores, block.num_rows, block.args->softcap);
    if (!tiles[t].is_full) hide_scores(block, tiles[t]);
  }
}

// Takes the weights of ghosts out of a row, but for the block sums; returns the sum of the others.
static float lay_ghosts(const Tile& tile, float* weights, const float* sums) {
  float kept[kCellsPerTile];
  for (int c = 0; c < kCellsPerTile; ++c) {
    kept[c] = tile.is_ghost[c] ? 0.0f : sums[c];
    if (tile.is_ghost[c]) store(weights + c * kTokensPerCell, zero());
  }
  return (kept[0] + kept[1]) + (kept[2] + kept[3]);
}

// Moves the running maxima over the tile and turns its scores into weights relative to them.
static void weigh_tile(AttentionBlock& block, const Tile& tile) {
  for (int r = 0; r < block.num_rows; ++r) {
    const float* scores = tile.scores + r * kTokensPerTile;
    const F32x16 low = max(load(scores), load(scores + 16));
    const F32x16 high = max(load(scores + 32), load(scores + 48));
    const float of_tile = reduce_max(max(low, high));
    const float before = block.max[r];
    const float after = of_tile > before ? of_tile : before;
    const float reference = after == -__builtin_inff() ? 0.0f : after;
    block.max[r] = after;
    block.tile_max[tile.index][r] = after;
    block.reference[r] = reference;
    block.correction[r] = before - reference;
  }
  for (int r = 0; r < block.num_rows; r += 16) store(block.correction + r, exp(load(block.correction + r)));
  for (int r = 0; r < block.num_rows; ++r) {
    const F32x16 reference = broadcast(block.reference[r]);
    float* scores = tile.scores + r * kTokensPerTile;
    F32x16 weights[kCellsPerTile];
    for (int c = 0; c < kCellsPerTile; ++c) {
      weights[c] = exp(sub(load(scores + c * kTokensPerCell), reference));
      store(scores + c * kTokensPerCell, weights[c]);
    }
    float* sums = block.tile_sums[tile.index][r];
    reduce_add4(weights[0], weights[1], weights[2], weights[3], sums);
    const float of_tile =
        tile.has_ghosts ? lay_ghosts(tile, scores, sums) : (sums[0] + sums[1]) + (sums[2] + sums[3]);
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

// The weights of `num_rows` rows from `first` times the scales of the values of cells [begin, end): [group]
// [row][key], and returns what lies between two groups.
static std::int64_t scale_weights(AttentionBlock& block, const Tile& tile, KeyRange keys, int first,
                                  int num_rows) {
  const std::int32_t head_dim = block.args->head_dim;
  const kv::KvCode code = tile.values[keys.begin / kTokensPerCell].code;
  const std::int64_t num_groups = scale_of(code) == ScaleOf::kGroup ? head_dim / kv::kChannelsPerScale : 1;
  const std::int64_t stride = std::int64_t{num_rows} * kTokensPerTile;
  for (int c = keys.begin / kTokensPerCell; c * kTokensPerCell < keys.end; ++c) {
    for (std::int64_t group = 0; group < num_groups; ++group) {
      const F32x16 scale = value_scales(code, tile.values[c].scales, head_dim, group);
      for (int r = 0; r < num_rows; ++r) {
        const std::int64_t at = r * kTokensPerTile + c * kTokensPerCell;
        store(block.scaled_weights + group * stride + at,
              mul(load(tile.scores + first * kTokensPerTile + at), scale));
      }
    }
  }
  return num_groups == 1 ? 0 : stride;
}

template <class Values>
static void add_alike(AttentionBlock& block, const Tile& tile, const VisibleKeys& seen, Sums& sums) {
  const std::int32_t head_dim = block.args->head_dim;
  Values values[kCellsPerTile];
  for (int c = seen.keys.begin / kTokensPerCell; c * kTokensPerCell < seen.keys.end; ++c) {
    const HalfCell& cell = tile.values[c];
    values[c].open(cell.widened == nullptr ? cell.data : reinterpret_cast<const std::byte*>(cell.widened),
                   head_dim);
  }
  const bool is_scaled = scale_of(tile.values[seen.keys.begin / kTokensPerCell].code) != ScaleOf::kNothing;
  const int num_rows = seen.end - seen.begin;
  for (int strip = 0; strip < num_strips(num_rows); ++strip) {
    const int first = seen.begin + strip_begin(num_rows, strip);
    const int height = seen.begin + strip_begin(num_rows, strip + 1) - first;
    WeightedValues<Values> in = {tile.scores + first * kTokensPerTile,
                                 0,
                                 sums.are_corrected ? kNoCorrections : block.correction + first,
                                 values,
                                 tile.values,
                                 seen.keys.begin,
                                 seen.keys.end,
                                 head_dim};
    if (is_scaled) {
      in.group_stride = scale_weights(block, tile, seen.keys, first, height);
      in.weights = block.scaled_weights;
    }
    add_rows(height, in, sums.of_rows + static_cast<std::int64_t>(first) * head_dim);
  }
  sums.are_corrected = true;
}

// Adds the values of cells that read alike.
static void add_alike(AttentionBlock& block, const Tile& tile, const VisibleKeys& seen, Sums& sums) {
  const HalfCell& cell = tile.values[seen.keys.begin / kTokensPerCell];
  if (cell.widened != nullptr) return add_alike<ValuesF32>(block, tile, seen, sums);
  switch (cell.code) {
    case kv::KvCode::kF32:
      return add_alike<ValuesF32>(block, tile, seen, sums);
    case kv::KvCode::k8:
      return add_alike<Values8>(block, tile, seen, sums);
    case kv::KvCode::k4:
      return add_alike<Values4>(block, tile, seen, sums);
    case kv::KvCode::k3:
      return add_alike<Values3>(block, tile, seen, sums);
    case kv::KvCode::k2:
      return add_alike<Values2>(block, tile, seen, sums);
    default:
      return add_alike<ValuesF16>(block, tile, seen, sums);
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
static void add_visible(AttentionBlock& block, const Tile& tile, const VisibleKeys& seen) {
  Sums plain = {block.args->out + block.first_row * block.args->head_dim, false};
  Sums rotated = {block.has_rotated_out ? block.rotated_out : nullptr, false};
  for (int key = seen.keys.begin; key < seen.keys.end;) {
    int stop = (key / kTokensPerCell + 1) * kTokensPerCell;
    const HalfCell& cell = tile.values[key / kTokensPerCell];
    if (cell.data != nullptr) {
      while (stop < seen.keys.end && tile.values[stop / kTokensPerCell].reads_like(cell))
        stop += kTokensPerCell;
      if (cell.is_rotated) {
        if (rotated.of_rows == nullptr) rotated.of_rows = rotated_sums(block);
        for (int r = seen.begin; r < seen.end; ++r) block.saw_rotated[r] = true;
      }
      add_alike(block, tile, {seen.begin, seen.end, {key, smaller(stop, seen.keys.end)}},
                cell.is_rotated ? rotated : plain);
    }
    key = stop;
  }
  correct_sums(block, seen, plain);
  if (rotated.of_rows != nullptr) correct_sums(block, seen, rotated);
}

// out = out * correction + weights x values.
static void add_tile(AttentionBlock& block, const Tile& tile) {
  const AttentionArgs& args = *block.args;
  if (tile.is_full) return add_visible(block, tile, {0, block.num_rows, {0, kTokensPerTile}});
  for (int r = 0; r < block.num_rows;) {
    const std::int64_t token = (block.first_row + r) / args.group_size;
    const int end =
        smaller(static_cast<int>((token + 1) * args.group_size - block.first_row), block.num_rows);
    add_visible(block, tile,
                {r, end, visible_keys(args, position_of(args, block.first_row + r), tile.begin)});
    r = end;
  }
}

// `num_tiles` tiles from `first_tile` of the chunk; one where they are widened.
static void attend_span(AttentionBlock& block, int first_tile, int num_tiles) {
  const AttentionArgs& args = *block.args;
  Tile tiles[kTilesPerChunk];
  for (int t = 0; t < num_tiles; ++t) {
    tiles[t] = find_tile(block, args.key_begin + (first_tile + t) * kTokensPerTile, t);
  }
  using ReadCodes = void (*)(kv::KvCode, const std::byte*, std::int32_t, float*);
  if (block.widens) widen<ReadCodes>(args, read_key_codes, block.widened, tiles[0].keys);
  score_span(block, tiles, num_tiles);
  for (int t = 0; t < num_tiles; ++t) {
    weigh_tile(block, tiles[t]);
    if (block.widens) widen<ReadCodes>(args, read_value_codes, block.widened, tiles[t].values);
    add_tile(block, tiles[t]);
  }
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
  const int span = block.widens ? 1 : kTilesPerChunk;
  for (int tile = first_tile; tile < end_tile; tile += span) {
    attend_span(block, tile, smaller(span, end_tile - tile));
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
    block.widens = block.num_rows > kMaxRowsPerSpan;
    block.has_rotated_q = false;
    block.has_rotated_out = false;
    attend_block(block);
  }
}
