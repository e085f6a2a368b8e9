#include "backend/cpu/rope_executor.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/row_loop.h"

namespace kvasir::backend {

RopeExecutor::RopeExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, StepRows& rows)
    : kernels_(kernels), pool_(pool), rows_(rows), angles_(kernels, pool, rows) {}

void RopeExecutor::rope_and_store(const RopeAndStoreOp& op) {
  const KvGroupView& group = rows_.group(op.group);
  const std::int32_t head_dim = group.layout.head_dim;
  const auto rope = static_cast<std::size_t>(op.rope_index);
  const float* const angles = angles_.of(rope).data();
  const std::int32_t half = angles_.half_dim(rope);
  const kernels::RopeStyle style = angles_.style(rope);
  const bool stores = op.k.data != nullptr;
  for_rows(pool_, rows_.count(), op.q.width + 2 * op.k.width, [&](std::int32_t row, int) {
    if (op.is_v_k) std::copy_n(op.k.row(row), op.k.width, op.v.row(row));
    const float* cos = angles + std::int64_t{2} * half * row;
    const auto turn = [&](Rows rows, const float* norm_weight) {
      const std::int32_t normed = op.norms_rows ? rows.width : head_dim;
      for (float* part = rows.row(row); part < rows.row(row) + rows.width; part += normed) {
        if (norm_weight != nullptr) kernels_.rms_norm(part, norm_weight, op.norm_eps, normed, part);
        for (float* head = part; head < part + normed; head += head_dim) {
          kernels_.rope(head, cos, cos + half, 2 * half, style);
        }
      }
    };
    turn(op.q, op.q_norm);
    if (stores) turn(op.k, op.k_norm);
    if (op.temperature_scale != 0.0f) {
      const std::int32_t steps = rows_.position_of(row) / op.temperature_length;
      const auto factor = static_cast<float>(1.0 + op.temperature_scale * std::log1p(steps));
      kernels_.scale(op.q.row(row), factor, op.q.width, op.q.row(row));
    }
    if (!stores) return;
    if (op.v_norm != nullptr) {
      for (float* head = op.v.row(row); head < op.v.row(row) + op.v.width; head += head_dim) {
        kernels_.rms_norm(head, op.v_norm, op.norm_eps, head_dim, head);
      }
    }
    store(op, group, row);
  });
}

void RopeExecutor::store(const RopeAndStoreOp& op, const KvGroupView& group, std::int32_t row) {
  const std::int32_t head_dim = group.layout.head_dim;
  const std::int32_t position = rows_.position_of(row);
  const BlockId block = group.blocks[static_cast<std::size_t>(rows_.sequence_of(row))]
                                    [static_cast<std::size_t>(position / kernels::kTokensPerCell)];
  for (std::int32_t head = 0; head < group.layout.num_kv_heads; ++head) {
    const bool are_finite = kernels_.write_kv(
        {.k = op.k.row(row) + std::int64_t{head} * head_dim,
         .v = op.v.row(row) + std::int64_t{head} * head_dim,
         .head_dim = head_dim,
         .slot = position % kernels::kTokensPerCell,
         .format = group.layout.format,
         .cell = group.memory +
                 group.directory.at(block, group.layout.cell(op.layer_in_group, head)).offset()});
    if (!are_finite) rows_.mark_non_finite(row);
  }
}

}  // namespace kvasir::backend
