#include "backend/cpu/bounded_argmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::backend {
namespace {

using kernels::kRowsPerGroup;

constexpr std::int64_t kTasksPerWorker = 32;
constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr std::uint16_t kAllOfGroup = 0xffff;
static_assert(kLogitsPerTile == 64 && kRowsPerGroup == 16);
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// max(best, value); a NaN is no value.
void raise(std::atomic<float>& best, float value) {
  float known = best.load(std::memory_order_relaxed);
  while (known < value && !best.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void BoundedArgmax::find(const HeadOp& op, const std::byte* quantized, std::int32_t num_rows) {
  op_ = &op;
  matrix_ = static_cast<const CpuMatrix*>(op.weight);
  quantized_ = quantized;
  num_rows_ = num_rows;
  CHECK(matrix_->nibble_planes != nullptr && num_rows <= kMaxRows);
  num_logits_ = *op.argmax_of;
  CHECK(num_logits_ >= 1 && num_logits_ <= matrix_->num_rows);
  num_groups_ = ceil_div<std::int64_t>(num_logits_, kRowsPerGroup);
  CHECK(op.allowed.empty() || std::ssize(op.allowed) == num_rows);
  const std::int64_t input_bytes = matrix_->nibble_planes->input_bytes(matrix_->row_length);
  inputs_.resize(static_cast<std::size_t>(kMaxRows * input_bytes));
  for (std::int32_t row = 0; row < num_rows; ++row) {
    matrix_->nibble_planes->measure_inputs(quantized, matrix_->row_length, row, num_rows,
                                           inputs_.data() + row * input_bytes);
    best_[static_cast<std::size_t>(row)] = kMinusInfinity;
  }
  const std::int64_t num_tiles = ceil_div(num_groups_, kGroups);
  const std::int64_t tiles_per_task = std::max<std::int64_t>(
      1, num_tiles / (kTasksPerWorker * pool_.num_threads()));
  const std::int64_t num_tasks = ceil_div(num_tiles, tiles_per_task);
  prefetcher_.announce(num_tasks, [&](std::int64_t task) {
    return matrix_->packed + first_group(task * tiles_per_task) * matrix_->group_bytes;
  });
  pool_.parallel_for(num_tasks, [&](std::int64_t task) {
    const std::int64_t begin = task * tiles_per_task, end = std::min(num_tiles, begin + tiles_per_task);
    Bounds ring[2];  // a tile is finished when the next one is bounded: by then what it reads has arrived
    for (std::int64_t tile = begin; tile < end; ++tile) {
      ring[tile % 2].tile = tile;
      bound(ring[tile % 2]);
      if (tile > begin) finish(ring[(tile - 1) % 2]);
    }
    finish(ring[(end - 1) % 2]);
  });
}

std::int64_t BoundedArgmax::end_group(std::int64_t tile) const {
  return std::min(num_groups_, (tile + 1) * kGroups);
}

// The arguments for groups [group_begin, group_end), which lie in the tile.
kernels::BoundArgs BoundedArgmax::args_of(Bounds& bounds, std::int32_t row, std::int64_t group_begin,
                                          std::int64_t group_end) {
  const auto of_row = static_cast<std::size_t>(row);
  const std::int64_t i = group_begin - first_group(bounds.tile);
  return {.weights = matrix_->packed,
          .low_weights = matrix_->low,
          .k = matrix_->row_length,
          .num_rows = num_logits_,
          .group_begin = group_begin,
          .group_end = group_end,
          .quantized = quantized_,
          .token = row,
          .num_tokens = num_rows_,
          .inputs = inputs_.data() + row * matrix_->nibble_planes->input_bytes(matrix_->row_length),
          .estimate = bounds.estimate[of_row].data() + i * kRowsPerGroup,
          .slack = bounds.slack[of_row].data() + i * kRowsPerGroup,
          .upper = bounds.upper[of_row].data() + i,
          .lower = bounds.lower[of_row].data() + i};
}

std::uint64_t BoundedArgmax::counting(std::int64_t tile, std::int32_t row) const {
  if (op_->allowed.empty()) return kAll;
  const std::span<const std::uint64_t> words = op_->allowed[static_cast<std::size_t>(row)];
  if (words.empty()) return kAll;
  return tile < std::ssize(words) ? words[static_cast<std::size_t>(tile)] : 0;
}

void BoundedArgmax::narrow(Bounds& bounds, const kernels::BoundArgs& args, std::int32_t row) const {
  const std::uint64_t word = counting(bounds.tile, row);
  if (word == kAll) return;
  for (std::int64_t group = args.group_begin; group < args.group_end; ++group) {
    const std::int64_t i = group - args.group_begin, first = (group - first_group(bounds.tile)) * kRowsPerGroup;
    const auto bits = static_cast<std::uint16_t>(word >> first);
    if (bits == kAllOfGroup) continue;
    const std::int64_t num_rows = std::min<std::int64_t>(kRowsPerGroup, num_logits_ - group * kRowsPerGroup);
    float upper = kMinusInfinity, lower = kMinusInfinity;
    for (std::int64_t r = 0; r < num_rows; ++r) {
      if ((bits >> r & 1) == 0) continue;
      const float estimate = args.estimate[i * kRowsPerGroup + r], slack = args.slack[i * kRowsPerGroup + r];
      const bool is_finite = std::isfinite(estimate) && std::isfinite(slack);
      upper = std::max(upper, is_finite ? estimate + slack : -kMinusInfinity);
      if (is_finite) lower = std::max(lower, estimate - slack);
    }
    args.upper[i] = upper;
    args.lower[i] = lower;
  }
}

bool BoundedArgmax::reaches_best(const Bounds& bounds, std::int32_t row, std::int64_t i) const {
  const auto of_row = static_cast<std::size_t>(row);
  const float upper = bounds.upper[of_row][static_cast<std::size_t>(i)];
  return upper > kMinusInfinity && upper >= best_[of_row].load(std::memory_order_relaxed);
}

void BoundedArgmax::bound(Bounds& bounds) {
  const std::int64_t begin = first_group(bounds.tile), end = end_group(bounds.tile);
  for (std::int32_t row = 0; row < num_rows_; ++row) {
    const kernels::BoundArgs args = args_of(bounds, row, begin, end);
    if (counting(bounds.tile, row) == 0) {
      std::ranges::fill(bounds.upper[static_cast<std::size_t>(row)], kMinusInfinity);
      continue;
    }
    matrix_->nibble_planes->bound(args);
    narrow(bounds, args, row);
    for (std::int64_t i = 0; i < end - begin; ++i) raise(best_[static_cast<std::size_t>(row)], args.lower[i]);
    for (std::int64_t i = 0; i < end - begin; ++i) {
      if (!reaches_best(bounds, row, i)) continue;
      matrix_->nibble_planes->prefetch_refine(args_of(bounds, row, begin + i, begin + i + 1));
    }
  }
}

// Narrows the bounds of the group where that may rule it out.
BoundedArgmax::Verdict BoundedArgmax::judge(Bounds& bounds, std::int64_t group) {
  const std::int64_t i = group - first_group(bounds.tile);
  Verdict verdict = Verdict::kBounded;
  for (std::int32_t row = 0; row < num_rows_; ++row) {
    if (!reaches_best(bounds, row, i)) continue;
    const kernels::BoundArgs args = args_of(bounds, row, group, group + 1);
    matrix_->nibble_planes->refine(args);
    narrow(bounds, args, row);
    raise(best_[static_cast<std::size_t>(row)], *args.lower);
    if (reaches_best(bounds, row, i)) return Verdict::kWanted;
    verdict = Verdict::kRefined;
  }
  return verdict;
}

void BoundedArgmax::finish(Bounds& bounds) {
  const std::int64_t begin = first_group(bounds.tile), end = end_group(bounds.tile);
  const bool is_last = end == num_groups_;
  const std::int64_t low_bytes = matrix_->nibble_planes->low_group_bytes(matrix_->row_length);
  std::array<bool, kGroups> wanted{};
  std::int64_t skipped_bytes = 0;
  for (std::int64_t group = begin; group < end; ++group) {
    const Verdict verdict = is_last ? Verdict::kWanted : judge(bounds, group);
    wanted[static_cast<std::size_t>(group - begin)] = verdict == Verdict::kWanted;
    if (verdict == Verdict::kBounded) skipped_bytes += low_bytes;
    if (verdict == Verdict::kRefined)
      skipped_bytes += std::max<std::int64_t>(0, low_bytes - matrix_->nibble_planes->refine_bytes);
  }
  skipped_bytes_.fetch_add(skipped_bytes, std::memory_order_relaxed);
  const bool any = std::ranges::find(wanted, true) != wanted.end();
  for (std::int64_t group = begin; any && group < end; ++group) {
    if (wanted[static_cast<std::size_t>(group - begin)]) {
      compute(group);
    } else {
      leave_out(group);
    }
  }
  const std::int64_t first = begin * kRowsPerGroup;
  const std::int64_t count = std::min<std::int64_t>(kLogitsPerTile, num_logits_ - first);
  for (std::int32_t row = 0; row < num_rows_; ++row) {
    float& maximum = op_->tile_maxima.row(row)[bounds.tile];
    maximum = kMinusInfinity;
    if (any) hide(bounds.tile, row);
    if (any) kernels_.tile_maxima(op_->logits.row(row) + first, count, &maximum);
    raise(best_[static_cast<std::size_t>(row)], maximum);
  }
}

// Logits that do not count, of a tile that is there.
void BoundedArgmax::hide(std::int64_t tile, std::int32_t row) {
  const std::uint64_t word = counting(tile, row);
  if (word == kAll) return;
  float* const logits = op_->logits.row(row) + tile * kLogitsPerTile;
  const std::int64_t count = std::min<std::int64_t>(kLogitsPerTile, num_logits_ - tile * kLogitsPerTile);
  for (std::int64_t i = 0; i < count; ++i) {
    if ((word >> i & 1) == 0) logits[i] = kMinusInfinity;
  }
}

void BoundedArgmax::compute(std::int64_t group) {
  matrix_->nibble_planes->matmul({.weights = matrix_->packed,
                                  .low_weights = matrix_->low,
                                  .k = matrix_->row_length,
                                  .num_rows = num_logits_,
                                  .group_begin = group,
                                  .group_end = group + 1,
                                  .quantized = quantized_,
                                  .num_tokens = num_rows_,
                                  .out = op_->logits.data,
                                  .out_stride = op_->logits.stride});
}

// The group's tile is not left out whole.
void BoundedArgmax::leave_out(std::int64_t group) {
  const std::int64_t begin = group * kRowsPerGroup;
  const std::int64_t end = std::min<std::int64_t>(num_logits_, begin + kRowsPerGroup);
  for (std::int32_t row = 0; row < num_rows_; ++row) {
    std::fill(op_->logits.row(row) + begin, op_->logits.row(row) + end, kMinusInfinity);
  }
}

}  // namespace kvasir::backend
