// A block of query rows that go through a chunk of keys together, and the tiles of cells they meet. Included
// inside an ISA's namespace and target region.

#include "kernels/generic/attention/i16x32-inl.h"

inline constexpr int kMaxRowsPerBlock = 64;
inline constexpr int kTilesPerChunk = kTokensPerChunk / kTokensPerTile;
inline constexpr int kCellsPerChunk = kTokensPerChunk / kTokensPerCell;

KVASIR_FORCE_INLINE int smaller(int a, int b) { return a < b ? a : b; }
KVASIR_FORCE_INLINE int larger(int a, int b) { return a > b ? a : b; }

// How a format is read.
struct FormatTraits {
  kv::KvCodes codes;
  kv::KvHalfLayout keys, values;
  int key_lines, value_lines;  // cache lines for every 32 channels, at least one
};
class FormatTable {
 public:
  explicit FormatTable(std::int32_t head_dim) : head_dim_(head_dim) {}
  const FormatTraits& operator[](KvFormat format) {
    const auto index = static_cast<int>(format);
    if ((filled_ >> index & 1) == 0) fill(format);
    return of_[index];
  }

 private:
  void fill(KvFormat format) {
    const kv::KvCodes codes = kv::codes_of(format);
    const kv::KvHalfLayout keys = kv::half_layout(codes.keys, head_dim_);
    const kv::KvHalfLayout values = kv::half_layout(codes.values, head_dim_);
    const std::int32_t group_lines = 64 * larger(head_dim_ / kv::kChannelsPerScale, 1);
    of_[static_cast<int>(format)] = {codes, keys, values, ceil_div(keys.bytes, group_lines),
                                     ceil_div(values.bytes, group_lines)};
    filled_ |= 1u << static_cast<int>(format);
  }

  std::int32_t head_dim_;
  std::uint32_t filled_ = 0;  // by format
  FormatTraits of_[kv::kNumKvFormats];
};

// Few rows go through all tiles of a chunk at once, so that cells that read alike meet wherever they lie.
inline constexpr int kMaxRowsPerSpan = 2 * kMaxRowsPerStrip;

// The queries of a block as integer codes want them, rounded when the first such cell turns up.
struct RoundedQueries {
  bool are_written;
  alignas(64) float units[kMaxRowsPerBlock];
  alignas(64) std::int16_t i16[kMaxRowsPerBlock * kQueryStride];
};

// How far ahead cells of integer codes are asked for: as many numbers of keys, and of values, as fit into L2
// beside what is read, so that memory has time enough to answer, the softmax included.
static std::int32_t tokens_ahead(std::int32_t head_dim) {
  constexpr std::int32_t kNumbersAhead = 32768;
  return smaller(larger(kNumbersAhead / head_dim / kTokensPerTile, 1) * kTokensPerTile, kTokensPerChunk);
}

// The working set of one block of rows: on the stack, and in L1 or L2 for the usual head sizes.
struct AttentionBlock {
  explicit AttentionBlock(const AttentionArgs& of)
      : args(&of), codes_ahead(tokens_ahead(of.head_dim)), formats(of.head_dim) {}

  const AttentionArgs* args;
  std::int32_t codes_ahead;  // tokens, of cells of integer codes
  FormatTable formats;
  std::int64_t first_row;
  int num_rows;
  bool widens;                                        // cells are widened to float32 first
  bool has_rotated_out;                               // rotated_out is in use
  bool saw_rotated[kMaxRowsPerBlock];                 // of a row: has a share in it
  alignas(64) float max[kMaxRowsPerBlock];            // running, -inf before the first visible key
  alignas(64) float lane_sums[kMaxRowsPerBlock][16];  // of the weights so far, relative to max
  // By tile of a span: the running max, and exp(max before the tile - that), or 0 before the first key.
  alignas(64) float maxima[kTilesPerChunk][kMaxRowsPerBlock];
  alignas(64) float corrections[kTilesPerChunk][kMaxRowsPerBlock];
  // By 16 keys of the chunk: the running max after their tile, and their weights' sum relative to it.
  alignas(64) float cell_max[kMaxRowsPerBlock][kCellsPerChunk];
  alignas(64) float cell_sums[kMaxRowsPerBlock][kCellsPerChunk];
  // [tile][row][key], then the softmax weights: of one tile for many rows, of a whole chunk for few.
  alignas(64) float scores[kTilesPerChunk * kMaxRowsPerSpan * kTokensPerTile];
  // The weights of a tile for a strip's rows, times the scales of the values: [group][row][key].
  alignas(64) std::int16_t rounded_weights[kMaxScaleGroups * kMaxRowsPerStrip * kTokensPerTile];
  float weight_units[kMaxRowsPerStrip];
  alignas(64) float q[kMaxRowsPerBlock * kMaxHeadDim];            // [row][head_dim], scaled
  RoundedQueries rounded_q, rounded_rotated_q;                    // the same, and the same for rotated keys
  alignas(64) float rotated_out[kMaxRowsPerBlock * kMaxHeadDim];  // the share of rotated values
  alignas(64) std::byte widened[kTokensPerTile * kMaxHeadDim * sizeof(float)];  // K, then V, of the tile
};

static_assert(kMaxRowsPerBlock <= kTilesPerChunk * kMaxRowsPerSpan);

// Keys [begin, end) of a tile.
struct KeyRange {
  int begin;
  int end;
};

// The keys of the tile at `tile_begin` that the query at `position` sees, holes aside.
static KeyRange visible_keys(const AttentionArgs& args, std::int32_t position, std::int32_t tile_begin) {
  const int first = args.window > 0 ? larger(position - args.window + 1 - tile_begin, 0) : 0;
  const int end = smaller(smaller(position + 1 + args.ahead, args.keys.end) - tile_begin, kTokensPerTile);
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
  bool is_full;              // every row sees every key
  float* scores;             // of the first row; the others follow
  const float* corrections;  // [rows]
};

// The cell `index` keys behind the chunk's first, from kTokensPerChunk on among those to be attended to next.
static kv::KvCell find_cell(const AttentionArgs& args, std::int32_t index) {
  const bool is_next = index >= kTokensPerChunk;
  const KeyChunk& keys = is_next ? args.next_keys : args.keys;
  const std::int32_t position = keys.begin + index - (is_next ? kTokensPerChunk : 0);
  if (position >= keys.end) return {};
  return keys.cells.find(position / kTokensPerCell);
}

static HalfCell half_cell(kv::KvCode code, const std::byte* data, const kv::KvHalfLayout& layout) {
  return {.data = data,
          .next = data,
          .ranges = data + layout.ranges,
          .scales = reinterpret_cast<const std::uint16_t*>(data + layout.scales),
          .widened = nullptr,
          .next_lines_per_group = 0,
          .next_bytes = layout.bytes,
          .block = 0,
          .code = code};
}

// Finds the halves to ask for while a cell is read: keys ask for keys further on, values for values. Where
// nobody has asked for the first values of a chunk, its first keys do, and these values make up for it. Where
// there is nothing to ask for, halves ask for themselves, which the caches hold.
static void find_next(AttentionBlock& block, std::int32_t index, int value_lines, HalfCell& keys,
                      HalfCell& values) {
  const AttentionArgs& args = *block.args;
  // Floats take longer to read than to fetch.
  const std::int32_t ahead = is_float(keys.code) ? kTokensPerTile : block.codes_ahead;
  const bool is_first = !args.is_asked_for && index < ahead;
  if (is_first) {
    keys.next = values.data;
    keys.next_lines_per_group = value_lines;
  }
  const kv::KvCell next = find_cell(args, index + ahead);
  if (next.data == nullptr) return;
  const FormatTraits& format = block.formats[next.format];
  if (!is_first) {
    keys.next = next.data;
    keys.next_lines_per_group = format.key_lines;
  }
  const bool makes_up = is_first && index + ahead >= kTokensPerChunk;
  values.next = next.data + (makes_up ? 0 : format.keys.bytes);
  values.next_lines_per_group = format.value_lines + (makes_up ? format.key_lines : 0);
  values.next_bytes = format.values.bytes + (makes_up ? format.keys.bytes : 0);
}

// Finds the cells of the tile at `begin`.
static void find_cells(AttentionBlock& block, std::int32_t begin, Tile& tile) {
  const AttentionArgs& args = *block.args;
  for (int c = 0; c < kCellsPerTile; ++c) {
    const std::int32_t index = begin - args.keys.begin + c * kTokensPerCell;
    const kv::KvCell cell = find_cell(args, index);
    if (cell.data == nullptr) {
      tile.keys[c] = {};
      tile.values[c] = {};
      continue;
    }
    const FormatTraits& format = block.formats[cell.format];
    tile.keys[c] = half_cell(format.codes.keys, cell.data, format.keys);
    tile.keys[c].block = begin / kTokensPerCell + c;
    tile.values[c] = half_cell(format.codes.values, cell.data + format.keys.bytes, format.values);
    if (!block.widens) find_next(block, index, format.value_lines, tile.keys[c], tile.values[c]);
  }
}

// The tile at `begin`; its scores are those of the tile_in_span-th of a span.
static Tile find_tile(AttentionBlock& block, std::int32_t begin, int tile_in_span) {
  const AttentionArgs& args = *block.args;
  Tile tile;
  find_cells(block, begin, tile);
  tile.begin = begin;
  tile.index = (begin - args.keys.begin) / kTokensPerTile;
  tile.scores = block.scores + static_cast<std::int64_t>(tile_in_span) * block.num_rows * kTokensPerTile;
  tile.corrections = block.corrections[tile_in_span];
  // Later queries see later keys, earlier queries reach further back.
  const KeyRange of_first = visible_keys(args, position_of(args, block.first_row), begin);
  const KeyRange of_last = visible_keys(args, position_of(args, block.first_row + block.num_rows - 1), begin);
  tile.seen = {of_first.begin, of_last.end};
  tile.is_full = of_first.end == kTokensPerTile && of_last.begin == 0;
  for (const HalfCell& cell : tile.keys) tile.is_full = tile.is_full && cell.data != nullptr;
  return tile;
}

// Copies a tile's numbers as float32 or its codes as 16-bit integers, so that many strips share one
// conversion.
static void widen(AttentionBlock& block, HalfCell (&cells)[kCellsPerTile],
                  decltype(read_key_i16)* read_i16_of_cell) {
  const std::int32_t head_dim = block.args->head_dim;
  std::byte* widened = block.widened;
  for (HalfCell& cell : cells) {
    if (cell.data != nullptr && cell.code != kv::KvCode::kF32 && cell.code != kv::KvCode::kComponents) {
      if (is_float(cell.code)) {
        read_floats(cell.code, cell.data, head_dim, reinterpret_cast<float*>(widened));
      } else {
        read_i16_of_cell(cell.code, cell.data, head_dim, reinterpret_cast<std::int16_t*>(widened));
      }
      cell.widened = widened;
    }
    widened += std::int64_t{kTokensPerCell} * head_dim * sizeof(float);
  }
}
