// CpuBackend's attention: runs the planned tasks, merges split chunks in order, sums attention mass.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_tensors.h"

namespace kvasir::backend {
namespace {

using kernels::kTokensPerCell;
using kernels::kTokensPerChunk;
constexpr std::int64_t kBlocksPerChunk = kTokensPerChunk / kTokensPerCell;

}  // namespace

void CpuBackend::attend(const AttendOp& op, Activation& out) {
  const auto group_index = static_cast<std::size_t>(op.group);
  const KvGroupView& group = batch_.kv_groups[group_index];
  const std::int32_t head_dim = group.layout.head_dim;
  const std::int32_t group_size = op.q.width / head_dim / group.layout.num_kv_heads;
  AttentionPlan& plan = attention_[group_index];
  if (planned_group_size_[group_index] != group_size) {  // first layer of the group in this step
    plan_attention(batch_.sequences, group, group_size, batch_.want_attention_mass, plan);
    planned_group_size_[group_index] = group_size;
    const std::size_t per_row = static_cast<std::size_t>(head_dim) + 2;
    for (auto& scratch : worker_scratch_) {
      scratch.resize(
          std::max(scratch.size(), static_cast<std::size_t>(plan.max_unsplit_partial_rows) * per_row));
    }
    const auto rows = static_cast<std::size_t>(plan.num_partial_rows);
    split_out_.resize(std::max(split_out_.size(), rows * static_cast<std::size_t>(head_dim)));
    split_max_.resize(std::max(split_max_.size(), rows));
    split_sum_.resize(std::max(split_sum_.size(), rows));
    if (batch_.want_attention_mass) {
      split_block_sums_.resize(std::max(split_block_sums_.size(), rows * kBlocksPerChunk));
      split_lse_.resize(std::max(split_lse_.size(), rows));
    }
  }
  CpuActivation& attn = static_cast<CpuActivation&>(out);
  pool_.parallel_for(static_cast<std::int64_t>(plan.tasks.size()), [&](std::int64_t task, int worker) {
    run_attention_task(op, plan.tasks[static_cast<std::size_t>(task)], worker, attn);
  });
  for_rows(static_cast<std::int32_t>(plan.split_units.size()), std::int64_t{group_size} * head_dim,
           [&](std::int32_t i, int) {
             const auto index = static_cast<std::size_t>(plan.split_units[static_cast<std::size_t>(i)]);
             const AttentionUnit& unit = plan.units[index];
             merge_unit(op, unit, split_partials(unit.partial, head_dim), attn);
           });
  if (batch_.want_attention_mass && op.group == 0) add_attention_mass(op);
  for_rows(batch_.num_rows(), attn.width,
           [&](std::int32_t row, int) { quantize(attn, attn.row(row), row, batch_.num_rows(), row); });
}

CpuBackend::Partials CpuBackend::split_partials(std::int64_t first_row, std::int32_t head_dim) {
  return {.out = split_out_.data() + first_row * head_dim,
          .max = split_max_.data() + first_row,
          .sum = split_sum_.data() + first_row,
          .block_sums =
              batch_.want_attention_mass ? split_block_sums_.data() + first_row * kBlocksPerChunk : nullptr};
}

void CpuBackend::run_attention_task(const AttendOp& op, const AttentionTask& task, int worker,
                                    CpuActivation& out) {
  const AttentionPlan& plan = attention_[static_cast<std::size_t>(op.group)];
  const AttentionUnit& unit = plan.units[static_cast<std::size_t>(task.unit)];
  const std::int32_t head_dim = batch_.kv_groups[static_cast<std::size_t>(op.group)].layout.head_dim;
  const std::int64_t rows_per_chunk =
      std::int64_t{unit.num_tokens} * planned_group_size_[static_cast<std::size_t>(op.group)];
  const auto at_chunk = [&](Partials partials, std::int32_t chunk) {
    const std::int64_t first = (chunk - unit.chunk_begin) * rows_per_chunk;
    partials.out += first * head_dim;
    partials.max += first;
    partials.sum += first;
    if (partials.block_sums != nullptr) partials.block_sums += first * kBlocksPerChunk;
    return partials;
  };
  if (unit.split) {
    attend_chunk(op, unit, task.chunk, at_chunk(split_partials(unit.partial, head_dim), task.chunk));
    return;
  }
  float* scratch = worker_scratch_[static_cast<std::size_t>(worker)].data();
  const std::int64_t rows = rows_per_chunk * unit.num_chunks();
  const Partials partials{.out = scratch + 2 * rows, .max = scratch, .sum = scratch + rows};
  for (std::int32_t chunk = unit.chunk_begin; chunk < unit.chunk_end; ++chunk) {
    attend_chunk(op, unit, chunk, at_chunk(partials, chunk));
  }
  merge_unit(op, unit, partials, out);
}

void CpuBackend::attend_chunk(const AttendOp& op, const AttentionUnit& unit, std::int32_t chunk,
                              const Partials& partials) {
  const KvGroupView& group = batch_.kv_groups[static_cast<std::size_t>(op.group)];
  const std::int32_t group_size = planned_group_size_[static_cast<std::size_t>(op.group)];
  kernels::AttentionArgs args;
  args.q = op.q.row(unit.first_row) + std::int64_t{unit.kv_head} * group_size * group.layout.head_dim;
  args.q_stride = op.q.stride;
  args.num_query_tokens = unit.num_tokens;
  args.group_size = group_size;
  args.head_dim = group.layout.head_dim;
  args.first_position = unit.first_position;
  args.window = group.window;
  args.key_begin = chunk * kTokensPerChunk;
  args.key_end = std::min(unit.key_end, (chunk + 1) * kTokensPerChunk);
  args.prefetch_end = unit.key_end;
  args.cells = group.cells(unit.sequence, op.layer_in_group, unit.kv_head);
  args.scale = op.scale;
  args.softcap = op.softcap;
  args.out = partials.out;
  args.max = partials.max;
  args.sum = partials.sum;
  args.block_sums = partials.block_sums;
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
  if (unit.split && batch_.want_attention_mass) args.log_sum_exp = split_lse_.data() + unit.partial;
  kernels_.attention_merge(args);
}

// mass_b = exp(chunk max - log sum exp) * block sum, of the last row of each slice, over heads and layers
// (the identity behind FlashAttention's partial sums, Dao et al. 2022).
void CpuBackend::add_attention_mass(const AttendOp& op) {
  const AttentionPlan& plan = attention_[static_cast<std::size_t>(op.group)];
  const std::int32_t group_size = planned_group_size_[static_cast<std::size_t>(op.group)];
  for (std::int32_t index : plan.split_units) {
    const AttentionUnit& unit = plan.units[static_cast<std::size_t>(index)];
    const SequenceSlice& slice = batch_.sequences[static_cast<std::size_t>(unit.sequence)];
    if (unit.first_row != slice.first_row + slice.num_rows - 1) continue;
    std::vector<float>& mass = mass_[static_cast<std::size_t>(unit.sequence)];
    for (std::int32_t chunk = 0; chunk < unit.num_chunks(); ++chunk) {
      for (std::int32_t head = 0; head < group_size; ++head) {
        const auto row = static_cast<std::size_t>(unit.partial + std::int64_t{chunk} * group_size + head);
        if (!(split_sum_[row] > 0.0f)) continue;
        const float lse = split_lse_[static_cast<std::size_t>(unit.partial + head)];
        const float weight = std::exp(split_max_[row] - lse);
        const auto first_block = static_cast<std::size_t>(unit.chunk_begin + chunk) * kBlocksPerChunk;
        const std::size_t end = std::min(mass.size(), first_block + kBlocksPerChunk);
        for (std::size_t block = first_block; block < end; ++block) {
          mass[block] += weight * split_block_sums_[row * kBlocksPerChunk + block - first_block];
        }
      }
    }
  }
}

}  // namespace kvasir::backend
