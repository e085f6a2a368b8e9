// CpuBackend's attention: runs the planned tasks, merges split chunks in order, has attention mass summed.
#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_tensors.h"

namespace kvasir::backend {
namespace {

using kernels::kTokensPerCell;
using kernels::kTokensPerChunk;
constexpr std::int64_t kBlocksPerChunk = kTokensPerChunk / kTokensPerCell;

constexpr AttentionTask kNothing = {-1, -1};

kernels::KeyChunk chunk_of(const KvGroupView& group, std::int32_t layer_in_group, const AttentionUnit& unit,
                           std::int32_t chunk) {
  const std::int32_t begin = chunk * kTokensPerChunk;
  return {.begin = begin,
          .end = std::min(unit.key_end, begin + kTokensPerChunk),
          .cells = group.cells(unit.sequence, layer_in_group, unit.kv_head)};
}

}  // namespace

void CpuBackend::attend(const AttendOp& op, Activation& out) {
  const auto group_index = static_cast<std::size_t>(op.group);
  const KvGroupView& group = batch_.kv_groups[group_index];
  const std::int32_t head_dim = group.layout.head_dim;
  const std::int32_t group_size = op.q.width / head_dim / group.layout.num_kv_heads;
  AttentionPlan& plan = attention_[group_index];
  if (planned_group_size_[group_index] != group_size) {  // first layer of the group in this step
    plan_attention(batch_.sequences, group, group_size, plan);
    planned_group_size_[group_index] = group_size;
    const std::int64_t floats_per_row = partial_floats(plan, head_dim);
    const auto grow = [&](std::vector<float>& scratch, std::int64_t num_rows) {
      scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(num_rows * floats_per_row)));
    };
    for (auto& scratch : worker_scratch_) grow(scratch, plan.max_unsplit_partial_rows);
    grow(split_scratch_, plan.num_partial_rows);
  }
  if (!plan.observed.empty())
    block_mass_.begin_layer(plan, batch_.sequences, group_size, op.group, op.layer_in_group);
  CpuActivation& attn = static_cast<CpuActivation&>(out);
  const std::int64_t num_tasks = std::ssize(plan.tasks);
  if (num_tasks > 0) {
    prefetcher_.announce(num_tasks, [&](std::int64_t index) {
      const AttentionTask& task = plan.tasks[static_cast<std::size_t>(index)];
      const AttentionUnit& unit = plan.units[static_cast<std::size_t>(task.unit)];
      const kernels::KeyChunk keys = chunk_of(group, op.layer_in_group, unit, task.chunk);
      return keys.cells.find(keys.begin / kTokensPerCell).data;
    });
  }
  std::ranges::fill(asked_for_, kNothing);
  pool_.parallel_for(num_tasks,
                     [&](std::int64_t task, int worker) { run_attention_task(op, task, worker, attn); });
  const auto merge = [&](std::int64_t i, int) {
    const auto index = static_cast<std::size_t>(plan.split_units[static_cast<std::size_t>(i)]);
    const AttentionUnit& unit = plan.units[index];
    merge_unit(op, unit, split_partials(op, unit), attn);
  };
  const auto num_split = std::ssize(plan.split_units);
  if (plan.num_partial_rows * partial_floats(plan, head_dim) > kInlineFloats) {
    pool_.parallel_for(num_split, merge);
  } else {
    for (std::int64_t i = 0; i < num_split; ++i) merge(i, 0);
  }
  if (!plan.observed.empty()) block_mass_.end_layer();
  for_rows(batch_.num_rows(), attn.width,
           [&](std::int32_t row, int) { quantize(attn, attn.row(row), row, batch_.num_rows(), row); });
}

// Of a partial row: its output, its maximum and its sum; where somebody is observed its block sums too, and
// room for a log-sum-exp.
std::int64_t CpuBackend::partial_floats(const AttentionPlan& plan, std::int32_t head_dim) {
  return head_dim + 2 + (plan.observed.empty() ? 0 : kBlocksPerChunk + 1);
}

CpuBackend::Partials CpuBackend::partials_of(const AttentionUnit& unit, std::int32_t group_size,
                                             std::int32_t head_dim, float* scratch) {
  const std::int64_t num_rows = std::int64_t{unit.num_chunks()} * unit.num_tokens * group_size;
  Partials partials{.out = scratch + 2 * num_rows, .max = scratch, .sum = scratch + num_rows};
  if (unit.mass >= 0) {
    partials.block_sums = partials.out + num_rows * head_dim;
    partials.log_sum_exp = partials.block_sums + num_rows * kBlocksPerChunk;
  }
  return partials;
}

void CpuBackend::run_attention_task(const AttendOp& op, std::int64_t index, int worker, CpuActivation& out) {
  const auto group = static_cast<std::size_t>(op.group);
  const AttentionPlan& plan = attention_[group];
  const AttentionTask& task = plan.tasks[static_cast<std::size_t>(index)];
  const auto num_tasks = std::ssize(plan.tasks);
  const std::int64_t after = pool_.task_after(worker, index, num_tasks);
  const AttentionTask* next_task = after < num_tasks ? &plan.tasks[static_cast<std::size_t>(after)] : nullptr;
  const AttentionUnit& unit = plan.units[static_cast<std::size_t>(task.unit)];
  if (unit.split) return attend_chunk(op, task, next_task, worker, split_partials(op, unit));
  const Partials partials =
      partials_of(unit, planned_group_size_[group], batch_.kv_groups[group].layout.head_dim,
                  worker_scratch_[static_cast<std::size_t>(worker)].data());
  for (std::int32_t chunk = unit.chunk_begin; chunk < unit.chunk_end; ++chunk) {
    const AttentionTask next_chunk = {task.unit, chunk + 1};
    attend_chunk(op, {task.unit, chunk}, chunk + 1 < unit.chunk_end ? &next_chunk : next_task, worker,
                 partials);
  }
  merge_unit(op, unit, partials, out);
}

CpuBackend::Partials CpuBackend::split_partials(const AttendOp& op, const AttentionUnit& unit) {
  const auto group = static_cast<std::size_t>(op.group);
  const std::int32_t head_dim = batch_.kv_groups[group].layout.head_dim;
  return partials_of(unit, planned_group_size_[group], head_dim,
                     split_scratch_.data() + unit.partial * partial_floats(attention_[group], head_dim));
}

void CpuBackend::attend_chunk(const AttendOp& op, const AttentionTask& at, const AttentionTask* next,
                              int worker, const Partials& partials) {
  const KvGroupView& group = batch_.kv_groups[static_cast<std::size_t>(op.group)];
  const std::int32_t group_size = planned_group_size_[static_cast<std::size_t>(op.group)];
  const std::vector<AttentionUnit>& units = attention_[static_cast<std::size_t>(op.group)].units;
  const AttentionUnit& unit = units[static_cast<std::size_t>(at.unit)];
  kernels::AttentionArgs args;
  args.q = op.q.row(unit.first_row) + std::int64_t{unit.kv_head} * group_size * group.layout.head_dim;
  args.q_stride = op.q.stride;
  args.num_query_tokens = unit.num_tokens;
  args.group_size = group_size;
  args.head_dim = group.layout.head_dim;
  args.first_position = unit.first_position;
  args.window = group.window;
  args.keys = chunk_of(group, op.layer_in_group, unit, at.chunk);
  AttentionTask& asked_for = asked_for_[static_cast<std::size_t>(worker)];
  args.is_asked_for = asked_for == at;
  asked_for = next == nullptr ? kNothing : *next;
  if (next != nullptr) {
    args.next_keys =
        chunk_of(group, op.layer_in_group, units[static_cast<std::size_t>(next->unit)], next->chunk);
  }
  args.scale = op.scale;
  args.softcap = op.softcap;
  const std::int64_t first = std::int64_t{at.chunk - unit.chunk_begin} * unit.num_tokens * group_size;
  args.out = partials.out + first * args.head_dim;
  args.max = partials.max + first;
  args.sum = partials.sum + first;
  if (partials.block_sums != nullptr) args.block_sums = partials.block_sums + first * kBlocksPerChunk;
  kernels_.attention(args);
}

void CpuBackend::merge_unit(const AttendOp& op, const AttentionUnit& unit, const Partials& partials,
                            CpuActivation& out) {
  const KvGroupView& group = batch_.kv_groups[static_cast<std::size_t>(op.group)];
  const std::int32_t group_size = planned_group_size_[static_cast<std::size_t>(op.group)];
  kernels::AttentionMergeArgs args;
  args.partial_out = partials.out;
  args.partial_max = partials.max;
  args.partial_sum = partials.sum;
  args.num_chunks = unit.num_chunks();
  args.num_rows = unit.num_tokens * group_size;
  args.group_size = group_size;
  args.head_dim = group.layout.head_dim;
  args.out = out.row(unit.first_row) + std::int64_t{unit.kv_head} * group_size * group.layout.head_dim;
  args.out_stride = out.width;
  args.log_sum_exp = partials.log_sum_exp;
  kernels_.attention_merge(args);
  if (unit.mass < 0) return;
  block_mass_.fold(unit, {.max = partials.max,
                          .sum = partials.sum,
                          .block_sums = partials.block_sums,
                          .log_sum_exp = partials.log_sum_exp});
}

std::int32_t CpuBackend::attend_wanted_rows(const AttendOp& op, Rows x, Activation& out) {
  const bool loses_observed = std::ranges::any_of(batch_.sequences, [](const SequenceSlice& slice) {
    return slice.num_wanted_rows < std::min(slice.num_rows, slice.observed.num_queries);
  });
  if (loses_observed) attend(op, out);  // for what it leaves in block_mass_
  const Rows rows[] = {x, op.q};
  const std::int32_t count = keep_wanted_rows(rows);
  if (count > 0) attend(op, out);
  return count;
}

std::int32_t CpuBackend::keep_wanted_rows(std::span<const Rows> rows) {
  wanted_slices_.clear();
  std::int32_t count = 0;
  for (const SequenceSlice& slice : batch_.sequences) {
    const std::int32_t num_dropped = slice.num_rows - slice.num_wanted_rows;
    for (std::int32_t i = 0; i < slice.num_wanted_rows; ++i) {
      planned_row_[static_cast<std::size_t>(count + i)] = slice.first_row + num_dropped + i;
    }
    wanted_slices_.push_back({.first_row = count,
                              .num_rows = slice.num_wanted_rows,
                              .first_position = slice.first_position + num_dropped,
                              .num_wanted_rows = slice.num_wanted_rows,
                              .observed = slice.observed,
                              .num_draft_rows = slice.num_draft_rows});
    count += slice.num_wanted_rows;
  }
  if (count == batch_.num_rows()) return count;
  for (const Rows& moved : rows) {
    for (std::int32_t row = 0; row < count; ++row) {  // upwards: no row is overwritten before it has moved
      const float* from = moved.row(planned_row_[static_cast<std::size_t>(row)]);
      std::memmove(moved.row(row), from, static_cast<std::size_t>(moved.width) * sizeof(float));
    }
  }
  batch_.token_ids = batch_.token_ids.first(static_cast<std::size_t>(count));
  batch_.sequences = wanted_slices_;
  planned_group_size_.assign(planned_group_size_.size(), 0);  // attention is planned anew
  return count;
}

}  // namespace kvasir::backend
