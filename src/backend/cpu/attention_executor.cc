#include "backend/cpu/attention_executor.h"

#include <algorithm>

#include "backend/cpu/row_loop.h"

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

AttentionExecutor::AttentionExecutor(const kernels::KernelTable& kernels, ThreadPool& pool,
                                     WeightPrefetcher& prefetcher, const StepRows& rows)
    : kernels_(kernels),
      pool_(pool),
      prefetcher_(prefetcher),
      rows_(rows),
      worker_scratch_(static_cast<std::size_t>(pool.num_threads())),
      asked_for_(static_cast<std::size_t>(pool.num_threads())) {}

void AttentionExecutor::begin_step() {
  const BatchInput& batch = rows_.batch();
  plans_.resize(batch.kv_groups.size());
  planned_group_size_.assign(batch.kv_groups.size(), 0);
  block_scores_.begin_step(batch);
}

void AttentionExecutor::plan_group(std::int32_t group_index, std::int32_t group_size) {
  const KvGroupView& group = rows_.group(group_index);
  AttentionPlan& plan = plans_[static_cast<std::size_t>(group_index)];
  plan_attention(rows_.batch().sequences, group, group_size, plan);
  planned_group_size_[static_cast<std::size_t>(group_index)] = group_size;
  const std::int64_t floats_per_row = partial_floats(plan, group.layout.head_dim);
  const auto grow = [&](std::vector<float>& scratch, std::int64_t num_rows) {
    scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(num_rows * floats_per_row)));
  };
  for (auto& scratch : worker_scratch_) grow(scratch, plan.max_unsplit_partial_rows);
  grow(split_scratch_, plan.num_partial_rows);
}

void AttentionExecutor::attend(const AttendOp& op, bool is_scored, CpuActivation& out) {
  const auto group_index = static_cast<std::size_t>(op.group);
  const KvGroupView& group = rows_.group(op.group);
  const std::int32_t head_dim = group.layout.head_dim;
  const std::int32_t group_size = op.q.width / head_dim / group.layout.num_kv_heads;
  // The first layer of the group in this step plans for all.
  if (planned_group_size_[group_index] != group_size) plan_group(op.group, group_size);
  const AttentionPlan& plan = plans_[group_index];
  is_scored_ = is_scored && !plan.observed.empty();
  if (is_scored_)
    block_scores_.begin_layer(plan, rows_.batch().sequences, group_size, op.group, op.layer_in_group);
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
  pool_.parallel_for(num_tasks, [&](std::int64_t task, int worker) { run_task(op, task, worker, out); });
  const auto merge = [&](std::int64_t i, int) {
    const auto index = static_cast<std::size_t>(plan.split_units[static_cast<std::size_t>(i)]);
    const AttentionUnit& unit = plan.units[index];
    merge_unit(op, unit, split_partials(op, unit), out);
  };
  const auto num_split = std::ssize(plan.split_units);
  if (plan.num_partial_rows * partial_floats(plan, head_dim) > kInlineFloats) {
    pool_.parallel_for(num_split, merge);
  } else {
    for (std::int64_t i = 0; i < num_split; ++i) merge(i, 0);
  }
  if (is_scored_) block_scores_.end_layer();
}

// A partial row has an output, a maximum and a sum. Where a slice is observed it has block sums too, and room
// for a log-sum-exp.
std::int64_t AttentionExecutor::partial_floats(const AttentionPlan& plan, std::int32_t head_dim) {
  return head_dim + 2 + (plan.observed.empty() ? 0 : kBlocksPerChunk + 1);
}

AttentionExecutor::Partials AttentionExecutor::partials_of(const AttentionUnit& unit, std::int32_t group_size,
                                                           std::int32_t head_dim, float* scratch) {
  const std::int64_t num_rows = std::int64_t{unit.num_chunks()} * unit.num_tokens * group_size;
  Partials partials{.out = scratch + 2 * num_rows, .max = scratch, .sum = scratch + num_rows};
  if (unit.score >= 0) {
    partials.block_sums = partials.out + num_rows * head_dim;
    partials.log_sum_exp = partials.block_sums + num_rows * kBlocksPerChunk;
  }
  return partials;
}

void AttentionExecutor::run_task(const AttendOp& op, std::int64_t index, int worker, CpuActivation& out) {
  const auto group = static_cast<std::size_t>(op.group);
  const AttentionPlan& plan = plans_[group];
  const AttentionTask& task = plan.tasks[static_cast<std::size_t>(index)];
  const auto num_tasks = std::ssize(plan.tasks);
  const std::int64_t after = pool_.task_after(worker, index, num_tasks);
  const AttentionTask* next_task = after < num_tasks ? &plan.tasks[static_cast<std::size_t>(after)] : nullptr;
  const AttentionUnit& unit = plan.units[static_cast<std::size_t>(task.unit)];
  if (unit.split) return attend_chunk(op, task, next_task, worker, split_partials(op, unit));
  const Partials partials = partials_of(unit, planned_group_size_[group],
                                        rows_.group(op.group).layout.head_dim,
                                        worker_scratch_[static_cast<std::size_t>(worker)].data());
  for (std::int32_t chunk = unit.chunk_begin; chunk < unit.chunk_end; ++chunk) {
    const AttentionTask next_chunk = {task.unit, chunk + 1};
    attend_chunk(op, {task.unit, chunk}, chunk + 1 < unit.chunk_end ? &next_chunk : next_task, worker,
                 partials);
  }
  merge_unit(op, unit, partials, out);
}

AttentionExecutor::Partials AttentionExecutor::split_partials(const AttendOp& op, const AttentionUnit& unit) {
  const auto group = static_cast<std::size_t>(op.group);
  const std::int32_t head_dim = rows_.group(op.group).layout.head_dim;
  return partials_of(unit, planned_group_size_[group], head_dim,
                     split_scratch_.data() + unit.partial * partial_floats(plans_[group], head_dim));
}

void AttentionExecutor::attend_chunk(const AttendOp& op, const AttentionTask& at, const AttentionTask* next,
                                     int worker, const Partials& partials) {
  const KvGroupView& group = rows_.group(op.group);
  const std::int32_t group_size = planned_group_size_[static_cast<std::size_t>(op.group)];
  const std::vector<AttentionUnit>& units = plans_[static_cast<std::size_t>(op.group)].units;
  const AttentionUnit& unit = units[static_cast<std::size_t>(at.unit)];
  kernels::AttentionArgs args;
  args.q = op.q.row(unit.first_row) + std::int64_t{unit.kv_head} * group_size * group.layout.head_dim;
  args.q_stride = op.q.stride;
  args.num_query_tokens = unit.num_tokens;
  args.group_size = group_size;
  args.head_dim = group.layout.head_dim;
  args.first_position = unit.first_position;
  args.window = group.window;
  args.ahead = group.ahead;
  args.keys = chunk_of(group, op.layer_in_group, unit, at.chunk);
  AttentionTask& asked_for = asked_for_[static_cast<std::size_t>(worker)];
  args.is_asked_for = asked_for == at;
  asked_for = next == nullptr ? kNothing : *next;
  if (next != nullptr) {
    args.next_keys = chunk_of(group, op.layer_in_group, units[static_cast<std::size_t>(next->unit)],
                              next->chunk);
  }
  args.scale = op.scale;
  args.softcap = op.softcap;
  args.basis = group.basis_of(group.layout.cell(op.layer_in_group, unit.kv_head));
  const std::int64_t first = std::int64_t{at.chunk - unit.chunk_begin} * unit.num_tokens * group_size;
  args.out = partials.out + first * args.head_dim;
  args.max = partials.max + first;
  args.sum = partials.sum + first;
  if (partials.block_sums != nullptr) args.block_sums = partials.block_sums + first * kBlocksPerChunk;
  kernels_.attention(args);
}

void AttentionExecutor::merge_unit(const AttendOp& op, const AttentionUnit& unit, const Partials& partials,
                                   CpuActivation& out) {
  const KvGroupView& group = rows_.group(op.group);
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
  if (op.sinks != nullptr) args.sinks = op.sinks + std::int64_t{unit.kv_head} * group_size;
  kernels_.attention_merge(args);
  if (unit.score < 0 || !is_scored_) return;
  block_scores_.fold(unit, {.max = partials.max,
                            .sum = partials.sum,
                            .block_sums = partials.block_sums,
                            .log_sum_exp = partials.log_sum_exp});
}

}  // namespace kvasir::backend
