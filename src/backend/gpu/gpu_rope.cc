#include "backend/gpu/gpu_rope.h"

#include <cmath>

namespace kvasir::backend {

GpuRope::GpuRope(GpuDevice& device, DeviceCopies& copies, const kernels::KernelTable& kernels, ThreadPool& pool,
                 StepRows& rows, RowFlags& flags, GpuCells& cells)
    : device_(device),
      copies_(copies),
      rows_(rows),
      flags_(flags),
      cells_(cells),
      angles_(kernels, pool, rows) {}

const float* GpuRope::device_angles(std::size_t rope) {
  while (device_angles_.size() <= rope) device_angles_.push_back(std::make_unique<DeviceArray<float>>(device_));
  const bool is_there = angles_.is_computed(rope);
  const std::span<const float> angles = angles_.of(rope);
  return is_there || angles.empty() ? device_angles_[rope]->data() : device_angles_[rope]->assign(angles);
}

// Every part of that width by itself.
void GpuRope::norm_parts(Rows rows, std::int32_t width, const float* weight, float eps) {
  if (weight == nullptr) return;
  device_.norm({.x = rows.data,
                .x_stride = rows.stride,
                .width = width,
                .num_rows = rows_.count(),
                .num_parts = rows.width / width,
                .weight = copies_.of(weight, width),
                .eps = eps,
                .out = rows.data,
                .out_stride = rows.stride});
}

void GpuRope::scale_by_position(const RopeAndStoreOp& op) {
  for (std::int32_t row = 0; row < rows_.count(); ++row) {
    const std::int32_t steps = rows_.position_of(row) / op.temperature_length;
    const auto factor = static_cast<float>(1.0 + op.temperature_scale * std::log1p(steps));
    if (factor == 1.0f) continue;
    device_.elementwise({.function = cuda::Elementwise::kScale,
                         .a = op.q.row(row),
                         .factor = factor,
                         .n = op.q.width,
                         .out = op.q.row(row)});
  }
}

void GpuRope::rope_and_store(const RopeAndStoreOp& op) {
  const KvGroupView& group = rows_.group(op.group);
  const std::int32_t head_dim = group.layout.head_dim, num_rows = rows_.count();
  const auto rope = static_cast<std::size_t>(op.rope_index);
  const bool stores = op.k.data != nullptr;
  if (num_rows == 0) return;
  if (op.is_v_k) {
    device_.gather_rows({.x = op.k.data,
                         .x_stride = op.k.stride,
                         .num_rows = num_rows,
                         .width = op.k.width,
                         .out = op.v.data,
                         .out_stride = op.v.stride});
  }
  norm_parts(op.q, op.norms_rows ? op.q.width : head_dim, op.q_norm, op.norm_eps);
  if (stores) {
    norm_parts(op.k, op.norms_rows ? op.k.width : head_dim, op.k_norm, op.norm_eps);
    norm_parts(op.v, head_dim, op.v_norm, op.norm_eps);
  }
  const float* const angles = device_angles(rope);
  const std::int32_t num_kv_heads = stores ? group.layout.num_kv_heads : 0;
  const GpuCells::Refs refs = stores ? cells_.of_layer(op.group, op.layer_in_group) : GpuCells::Refs();
  const GpuCells::Places places = stores ? cells_.places(op.group) : GpuCells::Places();
  device_.rope_and_store({.q = op.q.data,
                          .k = op.k.data,
                          .v = op.v.data,
                          .q_stride = op.q.stride,
                          .k_stride = op.k.stride,
                          .v_stride = op.v.stride,
                          .num_rows = num_rows,
                          .num_q_heads = op.q.width / head_dim,
                          .num_kv_heads = num_kv_heads,
                          .head_dim = head_dim,
                          .rotary_dim = 2 * angles_.half_dim(rope),
                          .is_interleaved = angles_.style(rope) == kernels::RopeStyle::kInterleaved,
                          .cosines = angles,
                          .are_halves = group.layout.format == KvFormat::kF16,
                          .cells = group.memory,
                          .block_of = places.blocks,
                          .slot_of = places.slots,
                          .refs = refs.refs,
                          .ref_stride = refs.stride,
                          .is_finite = stores ? flags_.take(num_rows, num_kv_heads) : nullptr});
  if (op.temperature_scale != 0.0f) scale_by_position(op);
}

}  // namespace kvasir::backend
