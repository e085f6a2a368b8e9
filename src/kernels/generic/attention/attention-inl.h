// Attention of query rows over one chunk of a paged cache. Included inside an ISA's namespace and target
// region.
//
// Rows go in blocks, keys in tiles of 64 at absolute positions; a tile keeps one maximum and four block sums
// per row, and the softmax is corrected once per tile (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018; Dao et al., "FlashAttention", 2022). A row's numbers depend on its position and its
// visible keys alone: a hidden key gets the weight exp(-inf) = 0 and its value is not read for that row, and
// a tile without a visible key multiplies by exactly 1.

#include "kernels/generic/attention/block-inl.h"

// 0, or NaN where a number of the row is none: rounding to 16-bit integers and exp() know no such numbers,
// sums keep it.
static float start_of_sums(const float* row, std::int32_t head_dim) {
  F32x16 sum = zero();
  for (std::int32_t d = 0; d < head_dim; d += 16) {
    const F32x16 x = load_partial(row + d, smaller(head_dim - d, 16));
    sum = add(sum, sub(x, x));
  }
  return reduce_add(sum);
}

static void start_block(AttentionBlock& block) {
  const AttentionArgs& args = *block.args;
  for (int r = 0; r < block.num_rows; ++r) {
    block.max[r] = -__builtin_inff();
    store(block.lane_sums[r], zero());
    block.saw_rotated[r] = false;
  }
  for (int r = 0; r < block.num_rows; ++r) {
    const std::int64_t row = block.first_row + r;
    const float* head = args.q + (row / args.group_size) * args.q_stride +
                        (row % args.group_size) * args.head_dim;
    float* q = block.q + std::int64_t{r} * args.head_dim;
    scale(head, args.scale, args.head_dim, q);
    const float start = start_of_sums(q, args.head_dim);
    float* out = args.out + row * args.head_dim;
    for (std::int32_t d = 0; d < args.head_dim; ++d) out[d] = start;
  }
}

// scores = cap * tanh(scores / cap).
static void cap_scores(float* scores, int num_rows, float cap) {
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(num_rows) * kTokensPerTile; i += 16) {
    store(scores + i, capped(load(scores + i), broadcast(cap)));
  }
}

// Gives the keys a row does not see the score -inf.
static void hide_scores(const AttentionBlock& block, const Tile& tile) {
  const F32x16 hidden = broadcast(-__builtin_inff());
  for (int r = 0; r < block.num_rows; ++r) {
    const KeyRange keys = visible_keys(*block.args, position_of(*block.args, block.first_row + r),
                                       tile.begin);
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

// The queries in 16-bit integers, as the code's keys want them.
static const RoundedQueries& rounded_queries(AttentionBlock& block, kv::KvCode code) {
  const std::int32_t head_dim = block.args->head_dim;
  RoundedQueries& rounded = kv::is_rotated(code) ? block.rounded_rotated_q : block.rounded_q;
  for (int r = 0; !rounded.are_written && r < block.num_rows; ++r) {
    alignas(64) float row[kMaxHeadDim];
    __builtin_memcpy(row, block.q + std::int64_t{r} * head_dim,
                     static_cast<std::size_t>(head_dim) * sizeof(float));
    if (kv::is_rotated(code)) rotate_row(row, head_dim);
    rounded.units[r] = round_row(row, head_dim, rounded.i16 + r * kQueryStride);
  }
  rounded.are_written = true;
  return rounded;
}

// Scores of every row against `count` cells that read alike.
static void score_alike(AttentionBlock& block, const KeyCell* cells, int count) {
  const std::int32_t head_dim = block.args->head_dim;
  const kv::KvCode code = cells[0].cell->code;
  for (int strip = 0; strip < num_strips(block.num_rows); ++strip) {
    const int begin = strip_begin(block.num_rows, strip);
    const int height = strip_begin(block.num_rows, strip + 1) - begin;
    KeyCell of_strip[kTilesPerChunk * kCellsPerTile];
    for (int i = 0; i < count; ++i) of_strip[i] = {cells[i].cell, cells[i].scores + begin * kTokensPerTile};
    const std::int64_t first = std::int64_t{begin} * head_dim;
    if (code == kv::KvCode::kComponents) {
      score_components(*block.args, height, block.q + first, of_strip, count);
    } else if (!is_float(code)) {
      const RoundedQueries& q = rounded_queries(block, code);
      score_i16(height, {q.i16 + begin * kQueryStride, q.units + begin}, of_strip, count, head_dim);
    } else if (code == kv::KvCode::kF16 && cells[0].cell->widened == nullptr) {
      score_rows<KeysF16>(height, block.q + first, of_strip, count, head_dim);
    } else {
      score_rows<KeysF32>(height, block.q + first, of_strip, count, head_dim);
    }
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

static float max_of_tile(const Tile& tile, int r) {
  const float* scores = tile.scores + r * kTokensPerTile;
  const F32x16 low = max(load(scores), load(scores + 16));
  const F32x16 high = max(load(scores + 32), load(scores + 48));
  return reduce_max(max(low, high));
}

// Moves the running maxima of a row over the tiles of a span.
static void raise_maxima(AttentionBlock& block, const Tile* tiles, int num_tiles, int r) {
  float of_row = block.max[r];
  for (int t = 0; t < num_tiles; ++t) {
    const float of_tile = max_of_tile(tiles[t], r);
    const float before = of_row;
    of_row = of_tile > before ? of_tile : before;
    block.maxima[t][r] = of_row;
    block.corrections[t][r] = before - (of_row == -__builtin_inff() ? 0.0f : of_row);
  }
  block.max[r] = of_row;
}

// Turns the scores of a row into weights relative to the running maximum, or to 0 where that is still -inf.
static void weigh_row(AttentionBlock& block, const Tile& tile, float max, float correction, int r) {
  const F32x16 reference = broadcast(max == -__builtin_inff() ? 0.0f : max);
  float* scores = tile.scores + r * kTokensPerTile;
  float* cell_max = block.cell_max[r] + tile.index * kCellsPerTile;
  F32x16 weights[kCellsPerTile];
#pragma GCC unroll 4
  for (int c = 0; c < kCellsPerTile; ++c) {
    weights[c] = exp(sub(load(scores + c * kTokensPerCell), reference));
    cell_max[c] = max;
  }
#pragma GCC unroll 4
  for (int c = 0; c < kCellsPerTile; ++c) store(scores + c * kTokensPerCell, weights[c]);
  if (block.args->block_sums != nullptr) {
    float* sums = block.cell_sums[r] + tile.index * kCellsPerTile;
    reduce_add4(weights[0], weights[1], weights[2], weights[3], sums);
  }
  const F32x16 of_tile = add(add(weights[0], weights[1]), add(weights[2], weights[3]));
  store(block.lane_sums[r], fma(load(block.lane_sums[r]), broadcast(correction), of_tile));
}

// Turns the scores of a span into weights, each tile's relative to the maxima up to it. The tiles' maxima
// come first: their reductions need not wait for each other.
static void weigh_span(AttentionBlock& block, const Tile* tiles, int num_tiles) {
  for (int r = 0; r < block.num_rows; ++r) raise_maxima(block, tiles, num_tiles, r);
  for (int t = 0; t < num_tiles; ++t) {
    float* corrections = block.corrections[t];
    for (int r = 0; r < block.num_rows; r += 16) store(corrections + r, exp(load(corrections + r)));
  }
  for (int t = 0; t < num_tiles; ++t) {
    for (int r = 0; r < block.num_rows; ++r) {
      weigh_row(block, tiles[t], block.maxima[t][r], block.corrections[t][r], r);
    }
  }
}

inline constexpr float kNoCorrections[kMaxRowsPerStrip] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};

// Rows [begin, end) of the block, and the keys of the tile that all of them see.
struct VisibleKeys {
  int begin, end;
  KeyRange keys;
};

// Adds the values of a run of cells that have floats alike.
template <class Values>
static void add_alike(AttentionBlock& block, const Tile& tile, const VisibleKeys& seen, bool are_corrected) {
  const std::int32_t head_dim = block.args->head_dim;
  Values values[kCellsPerTile];
  for (int c = seen.keys.begin / kTokensPerCell; c * kTokensPerCell < seen.keys.end; ++c) {
    const HalfCell& cell = tile.values[c];
    values[c].open(cell.widened == nullptr ? cell.data : cell.widened, head_dim);
  }
  float* out = block.args->out + block.first_row * head_dim;
  const int num_rows = seen.end - seen.begin;
  for (int strip = 0; strip < num_strips(num_rows); ++strip) {
    const int first = seen.begin + strip_begin(num_rows, strip);
    const int height = seen.begin + strip_begin(num_rows, strip + 1) - first;
    const WeightedValues<Values> in = {tile.scores + first * kTokensPerTile,
                                       are_corrected ? kNoCorrections : tile.corrections + first,
                                       values,
                                       tile.values,
                                       seen.keys.begin,
                                       seen.keys.end,
                                       head_dim};
    add_rows(height, in, out + static_cast<std::int64_t>(first) * head_dim);
  }
}

// Makes sums of rows [begin, end) relative to the present maxima.
static void correct_sums(const AttentionBlock& block, const Tile& tile, int begin, int end, float* sums) {
  const std::int64_t head_dim = block.args->head_dim;
  for (int r = begin; r < end; ++r) {
    if (tile.corrections[r] == 1.0f) continue;
    scale(sums + r * head_dim, tile.corrections[r], head_dim, sums + r * head_dim);
  }
}

// Corrects what the rows have so far and adds the values of the keys they see that are floats.
static void add_visible(AttentionBlock& block, const Tile& tile, const VisibleKeys& seen) {
  bool are_corrected = false;
  for (int key = seen.keys.begin; key < seen.keys.end;) {
    int stop = (key / kTokensPerCell + 1) * kTokensPerCell;
    const HalfCell& cell = tile.values[key / kTokensPerCell];
    if (cell.data != nullptr && is_float(cell.code)) {
      while (stop < seen.keys.end && tile.values[stop / kTokensPerCell].is_float_like(cell))
        stop += kTokensPerCell;
      const VisibleKeys run = {seen.begin, seen.end, {key, smaller(stop, seen.keys.end)}};
      if (cell.code == kv::KvCode::kF16 && cell.widened == nullptr) {
        add_alike<ValuesF16>(block, tile, run, are_corrected);
      } else {
        add_alike<ValuesF32>(block, tile, run, are_corrected);
      }
      are_corrected = true;
    }
    key = stop;
  }
  if (!are_corrected) {
    correct_sums(block, tile, seen.begin, seen.end, block.args->out + block.first_row * block.args->head_dim);
  }
}

// The same for all rows. Those that see the same keys go together.
static void add_floats(AttentionBlock& block, const Tile& tile) {
  const AttentionArgs& args = *block.args;
  if (tile.is_full) return add_visible(block, tile, {0, block.num_rows, {0, kTokensPerTile}});
  const auto keys_of = [&](int r) {
    return visible_keys(args, position_of(args, block.first_row + r), tile.begin);
  };
  for (int r = 0; r < block.num_rows;) {
    const KeyRange keys = keys_of(r);
    int end = r + 1;
    for (; end < block.num_rows; ++end) {
      const KeyRange next = keys_of(end);
      if (next.begin != keys.begin || next.end != keys.end) break;
    }
    add_visible(block, tile, {r, end, keys});
    r = end;
  }
}

// Adds the values of the tile's cells of an integer code to `sums`; returns whether there are any.
static bool add_codes(AttentionBlock& block, const Tile& tile, kv::KvCode code, bool are_corrected,
                      float* sums) {
  const std::int32_t head_dim = block.args->head_dim;
  WeightedCells in = {};
  for (int c = tile.seen.begin / kTokensPerCell; c * kTokensPerCell < tile.seen.end; ++c) {
    const HalfCell& cell = tile.values[c];
    if (cell.data == nullptr || cell.code != code) continue;
    in.places[in.num_cells] = c;
    in.cells[in.num_cells++] = &cell;
  }
  if (in.num_cells == 0) return false;
  in.head_dim = head_dim;
  in.may_be_unwritten = code == kv::KvCode::k12 && !tile.is_full;
  for (int strip = 0; strip < num_strips(block.num_rows); ++strip) {
    const int first = strip_begin(block.num_rows, strip);
    const int height = strip_begin(block.num_rows, strip + 1) - first;
    in.group_stride = kv::is_rotated(code) ? std::int64_t{height} * kTokensPerTile : 0;
    round_weights(tile.scores + first * kTokensPerTile, height, in, block.rounded_weights,
                  block.weight_units);
    in.weights = {block.rounded_weights, block.weight_units};
    in.corrections = are_corrected ? kNoCorrections : tile.corrections + first;
    add_i16(height, in, sums + static_cast<std::int64_t>(first) * head_dim);
    for (int r = 0; kv::is_rotated(code) && r < height; ++r) {
      block.saw_rotated[first + r] = block.saw_rotated[first + r] || block.weight_units[r] > 0.0f;
    }
  }
  return true;
}

static float* rotated_sums(AttentionBlock& block) {
  const std::int64_t size = std::int64_t{block.num_rows} * block.args->head_dim;
  for (std::int64_t i = 0; !block.has_rotated_out && i < size; ++i) block.rotated_out[i] = 0.0f;
  block.has_rotated_out = true;
  return block.rotated_out;
}

static bool has_values(const Tile& tile, bool (*is)(kv::KvCode)) {
  for (const HalfCell& cell : tile.values) {
    if (cell.data != nullptr && is(cell.code)) return true;
  }
  return false;
}

// out = out * correction + weights x values: first those that are floats, then code by code.
static void add_tile(AttentionBlock& block, const Tile& tile) {
  float* plain = block.args->out + block.first_row * block.args->head_dim;
  bool are_corrected = has_values(tile, [](kv::KvCode code) { return is_float(code); });
  if (are_corrected) add_floats(block, tile);
  for (const kv::KvCode code : {kv::KvCode::k12, kv::KvCode::k8}) {
    are_corrected = add_codes(block, tile, code, are_corrected, plain) || are_corrected;
  }
  if (!are_corrected) correct_sums(block, tile, 0, block.num_rows, plain);
  if (!block.has_rotated_out && !has_values(tile, kv::is_rotated)) return;
  float* rotated = rotated_sums(block);
  are_corrected = false;
  constexpr kv::KvCode kRotated[] = {kv::KvCode::k4, kv::KvCode::k3, kv::KvCode::k2};
  for (const kv::KvCode code : kRotated) {
    are_corrected = add_codes(block, tile, code, are_corrected, rotated) || are_corrected;
  }
  if (!are_corrected) correct_sums(block, tile, 0, block.num_rows, rotated);
}

// `num_tiles` tiles from `first_tile` of the chunk; one where they are widened.
static void attend_span(AttentionBlock& block, int first_tile, int num_tiles) {
  const AttentionArgs& args = *block.args;
  Tile tiles[kTilesPerChunk];
  for (int t = 0; t < num_tiles; ++t) {
    tiles[t] = find_tile(block, args.keys.begin + (first_tile + t) * kTokensPerTile, t);
  }
  if (block.widens) widen(block, tiles[0].keys, read_key_i16);
  score_span(block, tiles, num_tiles);
  weigh_span(block, tiles, num_tiles);
  for (int t = 0; t < num_tiles; ++t) {
    if (block.widens) widen(block, tiles[t].values, read_value_i16);
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
  for (int r = 0; r < block.num_rows; ++r) {
    float* block_sums = block.args->block_sums + (block.first_row + r) * kCellsPerChunk;
    const float of_row = block.max[r];
    const F32x16 max = broadcast(of_row == -__builtin_inff() ? 0.0f : of_row);
    for (int c = 0; c < kCellsPerChunk; c += 16) {
      const Mask16 visited = and_not(first_lanes(smaller(larger(end_tile * kCellsPerTile - c, 0), 16)),
                                     first_lanes(smaller(larger(first_tile * kCellsPerTile - c, 0), 16)));
      const F32x16 sums = mul(load(block.cell_sums[r] + c), exp(sub(load(block.cell_max[r] + c), max)));
      store(block_sums + c, select(visited, sums, zero()));
    }
  }
}

static void attend_block(AttentionBlock& block) {
  const AttentionArgs& args = *block.args;
  start_block(block);
  const std::int32_t first_position = position_of(args, block.first_row);
  const std::int32_t last_position = position_of(args, block.first_row + block.num_rows - 1);
  const std::int32_t begin = args.window > 0 ? larger(args.keys.begin, first_position - args.window + 1)
                                             : args.keys.begin;
  const std::int32_t end = smaller(args.keys.end, last_position + 1 + args.ahead);
  const int first_tile = (begin - args.keys.begin) / kTokensPerTile;
  const int end_tile = larger((end - args.keys.begin + kTokensPerTile - 1) / kTokensPerTile, first_tile);
  const int span = block.widens ? 1 : kTilesPerChunk;
  for (int tile = first_tile; tile < end_tile; tile += span) {
    attend_span(block, tile, smaller(span, end_tile - tile));
  }
  if (block.has_rotated_out) add_rotated_out(block);
  for (int r = 0; r < block.num_rows; ++r) {
    args.max[block.first_row + r] = block.max[r];
    args.sum[block.first_row + r] = reduce_add(load(block.lane_sums[r]));
  }
  if (args.block_sums != nullptr) export_block_sums(block, first_tile, end_tile);
}

void attention(const AttentionArgs& args) {
  AttentionBlock block(args);
  const std::int64_t num_rows = static_cast<std::int64_t>(args.num_query_tokens) * args.group_size;
  for (block.first_row = 0; block.first_row < num_rows; block.first_row += kMaxRowsPerBlock) {
    const std::int64_t rest = num_rows - block.first_row;
    block.num_rows = rest < kMaxRowsPerBlock ? static_cast<int>(rest) : kMaxRowsPerBlock;
    block.widens = block.num_rows > kMaxRowsPerSpan;
    block.rounded_q.are_written = block.rounded_rotated_q.are_written = false;
    block.has_rotated_out = false;
    attend_block(block);
  }
}
