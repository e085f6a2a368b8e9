// Attention of a few query rows over a chunk of at most 512 keys in cells of F16 and F32: kernels/generic/attention has
// the order. Keys go in tiles of 64. A score and an output number are chains of fused multiply-adds of one thread; a
// row's maximum and sums are those of 16 lanes.
#include "backend/cuda/kernels/exp_rn.h"
#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/kernels/row_sums.h"
#include "kernels/table.h"

namespace kvasir::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kTile = kernels::kTokensPerTile;
constexpr int kSlots = kernels::kTokensPerCell;
constexpr int kCellsPerTile = kTile / kSlots;
constexpr int kCellsPerChunk = kernels::kTokensPerChunk / kSlots;
constexpr int kHalfWarps = kThreads / kVectorLanes;
constexpr int kRowsAtATime = 4;
static_assert(kTile % kSlots == 0 && kThreads % kTile == 0);

// Arrays in shared memory, by row of the task.
struct Work {
  float* q;           // [head_dim], scaled
  float* out;         // [head_dim]
  float* scores;      // [kTile], then weights
  float* lane_sums;   // [kVectorLanes]
  float* max;         // running
  float* correction;  // of the tile
  float* cell_max;    // [kCellsPerChunk]
  float* cell_sums;   // [kCellsPerChunk]

  static constexpr std::int64_t bytes(std::int64_t rows, std::int64_t head_dim) {
    return 4 * rows * (2 * head_dim + kTile + kVectorLanes + 2 + 2 * kCellsPerChunk);
  }
};

// A number of the arrays is at the next multiple of the rows.
KVASIR_DEVICE Work work_of(int rows, int head_dim) {
  std::int64_t at = 0;
  const auto next = [&](std::int64_t per_row) {
    float* array = simt::shared<float>(at, rows * per_row);
    at += 4 * rows * per_row;
    return array;
  };
  Work work;
  work.q = next(head_dim);
  work.out = next(head_dim);
  work.scores = next(kTile);
  work.lane_sums = next(kVectorLanes);
  work.max = next(1);
  work.correction = next(1);
  work.cell_max = next(kCellsPerChunk);
  work.cell_sums = next(kCellsPerChunk);
  return work;
}

struct Task {
  AttentionTask at;
  int rows;
};

// Where a cell lies; `data` is null where it is gone.
struct Cell {
  const std::byte* data;
  bool is_half;
};
KVASIR_DEVICE Cell find_cell(const AttentionArgs& args, const Task& task, std::int32_t key) {
  const std::int32_t block = simt::load(args.blocks + task.at.first_block + key / kSlots);
  if (block < 0) return {nullptr, false};
  const std::uint64_t ref = simt::load(args.refs + block * args.ref_stride + task.at.kv_head);
  const auto format = static_cast<kv::KvFormat>(ref % kv::KvCellRef::kAlignment);
  if (format == kv::KvFormat::kGone) return {nullptr, false};
  return {args.memory + ref / kv::KvCellRef::kAlignment * kv::KvCellRef::kAlignment,
          format == kv::KvFormat::kF16};
}

KVASIR_DEVICE float number_at(const Cell& cell, std::int64_t i) {
  if (cell.is_half)
    return simt::half_to_float(simt::load(reinterpret_cast<const std::uint16_t*>(cell.data) + i));
  return simt::load(reinterpret_cast<const float*>(cell.data) + i);
}

// Keys [begin, end) of the tile at `tile` that a row sees, holes aside.
struct KeyRange {
  int begin, end;
};
KVASIR_DEVICE KeyRange visible_keys(const AttentionArgs& args, const Task& task, int row, std::int32_t tile) {
  const std::int64_t position = task.at.first_position + row / args.group_size;
  const std::int64_t first = args.window > 0 ? position - args.window + 1 : 0;
  const std::int64_t last = position + 1 + args.ahead, end = last < task.at.key_end ? last : task.at.key_end;
  const std::int64_t from = first < tile ? 0 : first - tile, to = end - tile;
  return {static_cast<int>(from < kTile ? from : kTile), static_cast<int>(to < 0       ? 0
                                                                          : to < kTile ? to
                                                                                       : kTile)};
}

KVASIR_DEVICE void start_rows(const AttentionArgs& args, const Task& task, const Work& work) {
  for (int i = simt::thread_index(); i < task.rows * args.head_dim; i += kThreads) {
    const int row = i / args.head_dim;
    const float* head = args.q + (task.at.first_row + row / args.group_size) * args.q_stride +
                        (task.at.kv_head * args.group_size + row % args.group_size) *
                            std::int64_t{args.head_dim};
    simt::store(work.q + i, simt::load(head + i % args.head_dim) * args.scale);
  }
  for (int i = simt::thread_index(); i < task.rows * kVectorLanes; i += kThreads)
    simt::store(work.lane_sums + i, 0.0f);
  for (int i = simt::thread_index(); i < task.rows * kCellsPerChunk; i += kThreads) {
    simt::store(work.cell_max + i, -simt::infinity());
    simt::store(work.cell_sums + i, 0.0f);
  }
  for (int i = simt::thread_index(); i < task.rows; i += kThreads)
    simt::store(work.max + i, -simt::infinity());
  simt::sync_block();
  // An output starts as 0, or NaN where a number of its query is none.
  for (int row = simt::warp_index(); row < task.rows; row += kThreads / simt::kWarpSize) {
    bool is_lost = false;
    for (int d = simt::lane_index(); d < args.head_dim; d += simt::kWarpSize) {
      is_lost = is_lost ||
                !(simt::magnitude(simt::load(work.q + row * args.head_dim + d)) < simt::infinity());
    }
    const float start = simt::any_lane(is_lost) ? simt::quiet_nan() : 0.0f;
    for (int d = simt::lane_index(); d < args.head_dim; d += simt::kWarpSize)
      simt::store(work.out + row * args.head_dim + d, start);
  }
  simt::sync_block();
}

// The scores of rows row, row + step, ... (at most kRowsAtATime) against one key, a chain over the channels each.
KVASIR_DEVICE void score_key(const AttentionArgs& args, const Task& task, const Work& work, std::int32_t tile,
                             int key, int row, int step) {
  const Cell cell = tile + key < task.at.key_end ? find_cell(args, task, tile + key) : Cell{nullptr, false};
  float sums[kRowsAtATime] = {};
  bool is_seen[kRowsAtATime];
  bool is_any_seen = false;
  KVASIR_UNROLL
  for (int r = 0; r < kRowsAtATime; ++r) {
    const KeyRange seen = visible_keys(args, task, row + r * step, tile);
    is_seen[r] = row + r * step < task.rows && cell.data != nullptr && seen.begin <= key && key < seen.end;
    is_any_seen = is_any_seen || is_seen[r];
  }
  for (int d = 0; is_any_seen && d < args.head_dim; ++d) {
    const float number = number_at(cell, std::int64_t{d} * kSlots + key % kSlots);
    KVASIR_UNROLL
    for (int r = 0; r < kRowsAtATime; ++r) {
      if (is_seen[r])
        sums[r] = simt::fma_rn(simt::load(work.q + (row + r * step) * args.head_dim + d), number, sums[r]);
    }
  }
  KVASIR_UNROLL
  for (int r = 0; r < kRowsAtATime; ++r) {
    if (row + r * step >= task.rows) continue;
    const float score = args.softcap > 0.0f ? soft_capped(sums[r], args.softcap) : sums[r];
    simt::store(work.scores + (row + r * step) * kTile + key, is_seen[r] ? score : -simt::infinity());
  }
}

// Turns the scores of a row into weights relative to its running maximum; by half a warp.
KVASIR_DEVICE void weigh_row(const Task& task, const Work& work, int row, int tile_of_chunk) {
  const int lane = simt::lane_index() % kVectorLanes;
  const bool exists = row < task.rows;
  float values[kCellsPerTile];
  for (int c = 0; c < kCellsPerTile; ++c) {
    values[c] = exists ? simt::load(work.scores + row * kTile + c * kSlots + lane) : 0.0f;
  }
  const float of_lane = simt::max_or_second(simt::max_or_second(values[0], values[1]),
                                            simt::max_or_second(values[2], values[3]));
  const float of_tile = max_of_half(of_lane);
  const float before = exists ? simt::load(work.max + row) : 0.0f;
  const float of_row = of_tile > before ? of_tile : before;
  const float reference = of_row == -simt::infinity() ? 0.0f : of_row;
  const float correction = exp_rn(before - reference);
  for (int c = 0; c < kCellsPerTile; ++c) values[c] = exp_rn(values[c] - reference);
  float cell_sums[kCellsPerTile];
  for (int c = 0; c < kCellsPerTile; ++c) cell_sums[c] = add_lanes_of_half(values[c]);
  simt::sync_warp();  // all lanes have read the row's maximum
  if (!exists) return;
  for (int c = 0; c < kCellsPerTile; ++c)
    simt::store(work.scores + row * kTile + c * kSlots + lane, values[c]);
  float* lane_sum = work.lane_sums + row * kVectorLanes + lane;
  simt::store(lane_sum, simt::fma_rn(simt::load(lane_sum), correction,
                                     (values[0] + values[1]) + (values[2] + values[3])));
  if (lane > 0) return;
  simt::store(work.max + row, of_row);
  simt::store(work.correction + row, correction);
  for (int c = 0; c < kCellsPerTile; ++c) {
    const int cell = row * kCellsPerChunk + tile_of_chunk * kCellsPerTile + c;
    simt::store(work.cell_max + cell, of_row);
    simt::store(work.cell_sums + cell, cell_sums[c]);
  }
}

// out = out * correction + weights x values, over the keys in order.
KVASIR_DEVICE void add_values(const AttentionArgs& args, const Task& task, const Work& work,
                              std::int32_t tile) {
  for (int i = simt::thread_index(); i < task.rows * args.head_dim; i += kThreads) {
    const int row = i / args.head_dim, d = i % args.head_dim;
    const KeyRange seen = visible_keys(args, task, row, tile);
    float sum = simt::load(work.out + i) * simt::load(work.correction + row);
    for (int key = seen.begin; key < seen.end;) {
      const Cell cell = find_cell(args, task, tile + key);
      const int stop = (key / kSlots + 1) * kSlots, end = stop < seen.end ? stop : seen.end;
      for (; key < end; ++key) {
        if (cell.data == nullptr) continue;
        const float value = number_at(cell, std::int64_t{args.head_dim} * (kSlots + key % kSlots) + d);
        sum = simt::fma_rn(simt::load(work.scores + row * kTile + key), value, sum);
      }
    }
    simt::store(work.out + i, sum);
  }
}

KVASIR_DEVICE void store_results(const AttentionArgs& args, const Task& task, const Work& work) {
  const std::int64_t first = task.at.first_partial;
  for (int i = simt::thread_index(); i < task.rows * args.head_dim; i += kThreads) {
    simt::store(args.out + first * args.head_dim + i, simt::load(work.out + i));
  }
  for (int base = 0; base < task.rows; base += kHalfWarps) {
    const int row = base + simt::thread_index() / kVectorLanes, lane = simt::lane_index() % kVectorLanes;
    const float sum = add_lanes_of_half(
        row < task.rows ? simt::load(work.lane_sums + row * kVectorLanes + lane) : 0.0f);
    if (row >= task.rows || lane > 0) continue;
    simt::store(args.max + first + row, simt::load(work.max + row));
    simt::store(args.sum + first + row, sum);
  }
  for (int i = simt::thread_index(); args.block_sums != nullptr && i < task.rows * kCellsPerChunk;
       i += kThreads) {
    const float of_row = simt::load(work.max + i / kCellsPerChunk),
                max = of_row == -simt::infinity() ? 0.0f : of_row;
    simt::store(args.block_sums + first * kCellsPerChunk + i,
                simt::load(work.cell_sums + i) * exp_rn(simt::load(work.cell_max + i) - max));
  }
}

KVASIR_KERNEL(kThreads) void attention_kernel(AttentionArgs args) {
  const AttentionTask at = simt::load_parts(args.tasks + simt::block_index().x);
  const Task task = {at, at.num_tokens * args.group_size};
  const Work work = work_of(task.rows, args.head_dim);
  start_rows(args, task, work);
  const std::int64_t last = std::int64_t{at.first_position} + at.num_tokens + args.ahead;
  const std::int64_t end = last < at.key_end ? last : at.key_end,
                     first = args.window > 0 ? at.first_position - args.window + 1 : 0;
  const std::int64_t begin = first > at.key_begin ? first / kTile * kTile : at.key_begin;
  constexpr int kStep = kThreads / kTile;
  for (auto tile = static_cast<std::int32_t>(begin); tile < end; tile += kTile) {
    const int key = simt::thread_index() % kTile;
    for (int row = simt::thread_index() / kTile; row < task.rows; row += kStep * kRowsAtATime) {
      score_key(args, task, work, tile, key, row, kStep);
    }
    simt::sync_block();
    for (int base = 0; base < task.rows; base += kHalfWarps) {
      weigh_row(task, work, base + simt::thread_index() / kVectorLanes, (tile - at.key_begin) / kTile);
    }
    simt::sync_block();
    add_values(args, task, work, tile);
    simt::sync_block();
  }
  store_results(args, task, work);
}

}  // namespace

void attention(simt::Device& device, const AttentionArgs& args) {
  simt::launch<attention_kernel>(device, {static_cast<std::uint32_t>(args.num_tasks)}, kThreads,
                                 Work::bytes(kMaxAttentionRows, args.head_dim), args);
}

}  // namespace kvasir::cuda
