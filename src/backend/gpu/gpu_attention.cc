#include "backend/gpu/gpu_attention.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/table.h"

namespace kvasir::backend {
namespace {

using kernels::kTokensPerChunk;
constexpr std::int64_t kBlocksPerChunk = kTokensPerChunk / kernels::kTokensPerCell;
// Partial results take this part of the memory, and no more than so many bytes.
constexpr std::int64_t kScratchPart = 256, kMostScratchBytes = 256 << 20, kFloatBytes = 4;

void bring_home(GpuDevice& device, const float* from, std::int64_t count, std::vector<float>& to) {
  to.resize(static_cast<std::size_t>(count));
  device.copy_out(from, std::as_writable_bytes(std::span(to)));
}

}  // namespace

GpuAttention::GpuAttention(GpuDevice& device, DeviceCopies& copies, const StepRows& rows, GpuCells& cells)
    : device_(device),
      copies_(copies),
      rows_(rows),
      cells_(cells),
      scratch_bytes_(std::min(device.limit_bytes() / kScratchPart, kMostScratchBytes)),
      out_(device),
      max_(device),
      sum_(device),
      block_sums_(device),
      row_max_(device),
      total_sum_(device) {}

void GpuAttention::begin_step() {
  while (plans_.size() < rows_.batch().kv_groups.size()) plans_.push_back(std::make_unique<GroupPlan>(device_));
  forget_plans();
  block_scores_.begin_step(rows_.batch());
}

void GpuAttention::forget_plans() {
  for (const auto& plan : plans_) plan->group_size = 0;
}

// The units of a few rows come together, a KV head each, and the rows of the next ones are their neighbours or another
// slice's.
GpuAttention::Piece& GpuAttention::piece_for(const AttentionUnit& unit, std::int32_t num_kv_heads, std::int32_t head_dim,
                                             GroupPlan& plan) const {
  const std::int64_t of_rows = std::int64_t{unit.num_chunks()} * unit.num_tokens * plan.group_size * num_kv_heads;
  const std::int32_t first = unit.first_row, end = first + unit.num_tokens;
  if (!plan.pieces.empty()) {
    Piece& last = plan.pieces.back();
    const bool has_room = (last.num_partials + of_rows) * head_dim * kFloatBytes <= scratch_bytes_;
    if (has_room && (first == last.end_row || end == last.first_row)) {
      last.first_row = std::min(last.first_row, first);
      last.end_row = std::max(last.end_row, end);
      return last;
    }
  }
  const auto unit_index = static_cast<std::int32_t>(plan.first_partial.size());
  const auto task_index = static_cast<std::int32_t>(plan.tasks.size());
  plan.pieces.push_back({.first_unit = unit_index,
                         .end_unit = unit_index,
                         .first_task = task_index,
                         .end_task = task_index,
                         .first_row = first,
                         .end_row = end});
  return plan.pieces.back();
}

// Partial results of a unit: a row for each chunk, token and query head.
void GpuAttention::add_unit(const AttentionUnit& unit, std::int32_t num_heads, Piece& piece, GroupPlan& plan) {
  const std::int32_t group_size = plan.group_size, base = static_cast<std::int32_t>(piece.num_partials);
  const std::int32_t num_rows = unit.num_tokens * group_size;
  const std::int32_t tokens_per_task = std::max(1, cuda::kMaxAttentionRows / group_size);
  plan.first_partial.push_back(base);
  piece.num_partials += std::int64_t{unit.num_chunks()} * num_rows;
  for (std::int32_t chunk = 0; chunk < unit.num_chunks(); ++chunk) {
    const std::int32_t begin = (unit.chunk_begin + chunk) * kTokensPerChunk;
    for (std::int32_t token = 0; token < unit.num_tokens; token += tokens_per_task) {
      plan.tasks.push_back({.first_row = unit.first_row + token,
                            .num_tokens = std::min(tokens_per_task, unit.num_tokens - token),
                            .first_position = unit.first_position + token,
                            .kv_head = unit.kv_head,
                            .key_begin = begin,
                            .key_end = std::min<std::int32_t>(unit.key_end, begin + kTokensPerChunk),
                            .first_block = plan.first_block[static_cast<std::size_t>(unit.sequence)],
                            .first_partial = base + chunk * num_rows + token * group_size});
    }
  }
  for (std::int32_t row = 0; row < num_rows; ++row) {
    const std::int32_t head = unit.kv_head * group_size + row % group_size;
    const auto at = static_cast<std::size_t>((unit.first_row + row / group_size) * num_heads + head);
    plan.first[at] = base + row;
    plan.stride[at] = num_rows;
    plan.num_chunks[at] = unit.num_chunks();
  }
  ++piece.end_unit;
  piece.end_task = static_cast<std::int32_t>(plan.tasks.size());
}

void GpuAttention::plan_group(std::int32_t group_index, std::int32_t group_size, GroupPlan& plan) {
  CHECK(group_size <= cuda::kMaxAttentionRows);
  const KvGroupView& group = rows_.group(group_index);
  plan_attention(rows_.batch().sequences, group, group_size, plan.plan);
  plan.group_size = group_size;
  plan.first_partial.clear();
  plan.pieces.clear();
  plan.tasks.clear();
  const GpuCells::Blocks blocks = cells_.blocks(group_index);
  plan.blocks.assign(blocks.numbers.begin(), blocks.numbers.end());
  plan.first_block.assign(blocks.first.begin(), blocks.first.end());
  const std::int32_t num_kv_heads = group.layout.num_kv_heads, num_heads = num_kv_heads * group_size;
  const auto num_rows = static_cast<std::size_t>(rows_.count() * num_heads);
  plan.first.assign(num_rows, 0);
  plan.stride.assign(num_rows, 0);
  plan.num_chunks.assign(num_rows, 0);
  for (const AttentionUnit& unit : plan.plan.units) {
    Piece& piece = unit.kv_head == 0 ? piece_for(unit, num_kv_heads, group.layout.head_dim, plan) : plan.pieces.back();
    add_unit(unit, num_heads, piece, plan);
  }
  plan.device_tasks.assign(plan.tasks);
  plan.device_blocks.assign(plan.blocks);
  plan.device_first.assign(plan.first);
  plan.device_stride.assign(plan.stride);
  plan.device_chunks.assign(plan.num_chunks);
}

void GpuAttention::attend(const AttendOp& op, bool is_scored, GpuActivation& out) {
  const KvGroupView& group = rows_.group(op.group);
  GroupPlan& plan = *plans_[static_cast<std::size_t>(op.group)];
  const std::int32_t group_size = op.q.width / group.layout.head_dim / group.layout.num_kv_heads;
  if (plan.group_size != group_size) plan_group(op.group, group_size, plan);
  if (plan.tasks.empty()) return;
  const bool is_observed = is_scored && !plan.plan.observed.empty();
  if (is_observed) {
    block_scores_.begin_layer(plan.plan, rows_.batch().sequences, group_size, op.group, op.layer_in_group);
  }
  for (const Piece& piece : plan.pieces) {
    run_chunks(op, group, piece, is_observed, plan);
    merge(op, group, piece, plan, out);
    if (is_observed) fold_scores(piece, plan);
  }
  if (is_observed) block_scores_.end_layer();
}

void GpuAttention::run_chunks(const AttendOp& op, const KvGroupView& group, const Piece& piece, bool is_observed,
                              GroupPlan& plan) {
  const std::int32_t head_dim = group.layout.head_dim;
  const GpuCells::Refs refs = cells_.of_layer(op.group, op.layer_in_group);
  device_.attention({.tasks = plan.device_tasks.data() + piece.first_task,
                     .num_tasks = piece.end_task - piece.first_task,
                     .q = op.q.data,
                     .q_stride = op.q.stride,
                     .group_size = plan.group_size,
                     .head_dim = head_dim,
                     .window = group.window,
                     .ahead = group.ahead,
                     .scale = op.scale,
                     .softcap = op.softcap,
                     .blocks = plan.device_blocks.data(),
                     .refs = refs.refs,
                     .ref_stride = refs.stride,
                     .memory = group.memory,
                     .out = out_.resize(piece.num_partials * head_dim),
                     .max = max_.resize(piece.num_partials),
                     .sum = sum_.resize(piece.num_partials),
                     .block_sums = is_observed ? block_sums_.resize(piece.num_partials * kBlocksPerChunk) : nullptr});
}

void GpuAttention::merge(const AttendOp& op, const KvGroupView& group, const Piece& piece, GroupPlan& plan,
                         GpuActivation& out) {
  const std::int32_t head_dim = group.layout.head_dim, num_heads = op.q.width / head_dim;
  const std::int64_t first = std::int64_t{piece.first_row} * num_heads;
  const std::int32_t num_rows = (piece.end_row - piece.first_row) * num_heads;
  device_.attention_merge({.out = out_.data(),
                           .max = max_.data(),
                           .sum = sum_.data(),
                           .first = plan.device_first.data() + first,
                           .stride = plan.device_stride.data() + first,
                           .num_chunks = plan.device_chunks.data() + first,
                           .num_rows = num_rows,
                           .head_dim = head_dim,
                           .sinks = copies_.of(op.sinks, num_heads),
                           .num_heads = num_heads,
                           .merged = out.floats + first * head_dim,
                           .row_max = row_max_.resize(num_rows),
                           .total_sum = total_sum_.resize(num_rows)});
}

// By the host: few rows are observed.
void GpuAttention::fold_scores(const Piece& piece, const GroupPlan& plan) {
  const std::int32_t group_size = plan.group_size;
  const auto num_heads = static_cast<std::int32_t>(std::ssize(plan.first) / rows_.count());
  const std::int64_t num_rows = std::int64_t{piece.end_row - piece.first_row} * num_heads;
  bring_home(device_, max_.data(), piece.num_partials, home_max_);
  bring_home(device_, sum_.data(), piece.num_partials, home_sum_);
  bring_home(device_, block_sums_.data(), piece.num_partials * kBlocksPerChunk, home_block_sums_);
  bring_home(device_, row_max_.data(), num_rows, home_row_max_);
  bring_home(device_, total_sum_.data(), num_rows, home_total_);
  for (auto i = static_cast<std::size_t>(piece.first_unit); i < static_cast<std::size_t>(piece.end_unit); ++i) {
    const AttentionUnit& unit = plan.plan.units[i];
    if (unit.score < 0) continue;
    log_sum_exp_.clear();
    for (std::int32_t row = 0; row < unit.num_tokens * group_size; ++row) {
      const auto at =
          static_cast<std::size_t>((unit.first_row - piece.first_row + row / group_size) * num_heads +
                                   unit.kv_head * group_size + row % group_size);
      log_sum_exp_.push_back(home_row_max_[at] + std::log(home_total_[at]));
    }
    const std::int64_t first = plan.first_partial[i];
    block_scores_.fold(unit, {.max = home_max_.data() + first,
                              .sum = home_sum_.data() + first,
                              .block_sums = home_block_sums_.data() + first * kBlocksPerChunk,
                              .log_sum_exp = log_sum_exp_.data()});
  }
}

}  // namespace kvasir::backend
