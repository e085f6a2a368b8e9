// A block of query rows that go through a chunk of keys together, and the tiles of cells they meet. Included
// inside an ISA's namespace and target region.

#include "kernels/generic/attention_tile-inl.h"

inline constexpr int kMaxRowsPerBlock = 64;
inline constexpr int kTilesPerChunk = kTokensPerChunk / kTokensPerTile;

// How each format is read.
struct FormatTraits {
  kv::KvCodes codes;
  std::int64_t key_scales, value_scales, key_bytes;  // where they begin, in the half and in the cell
};
struct FormatTable {
  FormatTraits of[kv::kNumKvFormats];

  const FormatTraits& operator[](KvFormat format) const { return of[static_cast<int>(format)]; }
  void fill(std::int32_t head_dim) {
    for (int i = 0; i < kv::kNumKvFormats; ++i) {
      const auto format = static_cast<KvFormat>(i);
      const kv::KvCodes codes = kv::codes_of(format);
      of[i] = {codes, kv::half_layout(codes.keys, head_dim).scales,
               kv::half_layout(codes.values, head_dim).scales, kv::key_bytes(format, head_dim)};
    }
  }
};

// Few rows go through all tiles of a chunk at once, so that cells that read alike meet wherever they lie.
inline constexpr int kMaxRowsPerSpan = 2 * kMaxRowsPerStrip;
inline constexpr int kMaxScaleGroups = kMaxHeadDim / kv::kChannelsPerScale;

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
  // [tile][row][key], then the softmax weights: of one tile for many rows, of a whole chunk for few.
  alignas(64) float scores[kTilesPerChunk * kMaxRowsPerSpan * kTokensPerTile];
  // [group][row][key]: the weights of a strip's rows times the scales of the values.
  alignas(64) float scaled_weights[kMaxScaleGroups * kMaxRowsPerStrip * kTokensPerTile];
  alignas(64) float q[kMaxRowsPerBlock * kMaxHeadDim];            // [row][head_dim], scaled
  alignas(64) float rotated_q[kMaxRowsPerBlock * kMaxHeadDim];    // the same for rotated keys
  alignas(64) float rotated_out[kMaxRowsPerBlock * kMaxHeadDim];  // the share of rotated values
  alignas(64) float widened[kTokensPerTile * kMaxHeadDim];        // K, then V, of the current tile
};

static_assert(kMaxRowsPerBlock <= kTilesPerChunk * kMaxRowsPerSpan);

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

// The keys and the values of one tile's cells, and where it lies.
struct Tile {
  HalfCell keys[kCellsPerTile];
  HalfCell values[kCellsPerTile];
  std::int32_t begin;
  int index;      // of the chunk's
  KeyRange seen;  // by any row of the block
  bool is_ghost[kCellsPerTile];
  bool has_ghosts;
  bool is_full;   // every row sees every key
  float* scores;  // of the first row; the others follow
};

static kv::KvCell find_cell(const AttentionArgs& args, std::int32_t position, std::int32_t end) {
  return position < end ? args.cells.find(position / kTokensPerCell) : kv::KvCell{};
}

static HalfCell half_cell(kv::KvCode code, const std::byte* data, std::int64_t scales,
                          const std::byte* next) {
  return {data,    next, reinterpret_cast<const std::uint16_t*>(data + scales),
          nullptr, code, kv::is_rotated(code)};
}

// Finds the cells of the tile at `begin`, and the next one's, which may belong to the next chunk, as far as
// they exist; for a prefetch. Others are replaced by the present ones, which the caches hold.
static void find_cells(const AttentionBlock& block, std::int32_t begin, Tile& tile) {
  const AttentionArgs& args = *block.args;
  tile.has_ghosts = false;
  for (int c = 0; c < kCellsPerTile; ++c) {
    const std::int32_t position = begin + c * kTokensPerCell;
    const kv::KvCell cell = find_cell(args, position, args.key_end);
    kv::KvCell next;
    if (!block.widens) next = find_cell(args, position + kTokensPerTile, args.prefetch_end);
    if (next.data == nullptr) next = cell;
    tile.keys[c] = tile.values[c] = {};
    tile.is_ghost[c] = false;
    if (cell.data == nullptr) continue;
    const FormatTraits& format = block.formats[cell.format];
    tile.keys[c] = half_cell(format.codes.keys, cell.data, format.key_scales, next.data);
    tile.is_ghost[c] = format.codes.values == kv::KvCode::kNone;
    tile.has_ghosts = tile.has_ghosts || tile.is_ghost[c];
    if (tile.is_ghost[c]) continue;
    tile.values[c] = half_cell(format.codes.values, cell.data + format.key_bytes, format.value_scales,
                               next.data + block.formats[next.format].key_bytes);
  }
}

// The tile at `begin`; its scores are those of the tile_in_span-th of a span.
static Tile find_tile(AttentionBlock& block, std::int32_t begin, int tile_in_span) {
  const AttentionArgs& args = *block.args;
  Tile tile;
  find_cells(block, begin, tile);
  tile.begin = begin;
  tile.index = (begin - args.key_begin) / kTokensPerTile;
  tile.scores = block.scores + static_cast<std::int64_t>(tile_in_span) * block.num_rows * kTokensPerTile;
  // Later queries see later keys, earlier queries reach further back.
  const KeyRange of_first = visible_keys(args, position_of(args, block.first_row), begin);
  const KeyRange of_last = visible_keys(args, position_of(args, block.first_row + block.num_rows - 1), begin);
  tile.seen = {of_first.begin, of_last.end};
  tile.is_full = of_first.end == kTokensPerTile && of_last.begin == 0;
  for (const HalfCell& cell : tile.keys) tile.is_full = tile.is_full && cell.data != nullptr;
  return tile;
}

// Copies a tile's codes as float32, so that many strips share one conversion. `read` is read_key_codes or
// read_value_codes.
template <class Read>
static void widen(const AttentionArgs& args, Read read, float* widened, HalfCell (&cells)[kCellsPerTile]) {
  for (HalfCell& cell : cells) {
    if (cell.data != nullptr && cell.code != kv::KvCode::kF32) {
      read(cell.code, cell.data, args.head_dim, widened);
      cell.widened = widened;
    }
    widened += std::int64_t{kTokensPerCell} * args.head_dim;
  }
}
