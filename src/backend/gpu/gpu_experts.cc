#include "backend/gpu/gpu_experts.h"

#include <cmath>
#include <numeric>

#include "base/check.h"

namespace kvasir::backend {

cuda::Elementwise elementwise_of(Gate gate) {
  switch (gate) {
    case Gate::kSilu:
      return cuda::Elementwise::kSiluMul;
    case Gate::kGeluTanh:
      return cuda::Elementwise::kGeluTanhMul;
    case Gate::kGeluErf:
      return cuda::Elementwise::kGeluErfMul;
    case Gate::kSwigluOai:
      return cuda::Elementwise::kSwigluOai;
  }
  return cuda::Elementwise::kAdd;
}

// The first num_rows rows, one stride apart.
void GpuExperts::bring_home(const Rows& rows, std::int32_t num_rows, std::vector<float>& home) {
  home.resize(num_rows == 0 ? 0 : static_cast<std::size_t>((num_rows - 1) * rows.stride + rows.width));
  if (!home.empty()) device_.copy_out(rows.data, std::as_writable_bytes(std::span(home)));
}

void GpuExperts::route(const RouteOp& op, GpuExpertRows& experts) {
  CHECK(op.rule.num_experts == experts.shape().num_experts && op.rule.num_used == experts.shape().num_used);
  const std::int32_t num_rows = rows_.count();
  bring_home(op.logits, num_rows, home_);
  for (std::int32_t row = 0; row < num_rows; ++row) {
    route_row(op.rule, home_.data() + row * op.logits.stride, op.choice_bias, experts.experts(row), experts.weights(row));
  }
  experts.group(num_rows);
  const auto num_slots = static_cast<std::size_t>(experts.num_slots());
  if (num_slots == 0) return;
  experts.device_rows.assign({experts.rows_of_slots(), num_slots});
  experts.device_slots.assign({experts.slots_of_rows(), num_slots});
  experts.choice_weights.assign({experts.weights(0), num_slots});
}

void GpuExperts::quantize(GpuExpertRows& experts, const float* floats, std::int32_t width) {
  if (width % kernels::kActivationBlock != 0) return;
  quantized_at_.assign(static_cast<std::size_t>(experts.shape().num_experts), 0);
  std::int64_t num_bytes = 0;
  for (const std::int32_t expert : experts.busy_experts()) {
    quantized_at_[static_cast<std::size_t>(expert)] = num_bytes;
    num_bytes += kernels_.activation_bytes(width, experts.num_rows_of(expert));
  }
  std::byte* const quantized = experts.quantized.resize(num_bytes);
  for (const std::int32_t expert : experts.busy_experts()) {
    const std::int64_t slot = experts.first_slot(expert);
    const std::int32_t num_rows = experts.num_rows_of(expert);
    device_.quantize({.w8a8 = matmuls_.reads_w8a8(),
                      .x = floats + slot * width,
                      .x_stride = width,
                      .k = width,
                      .num_tokens = num_rows,
                      .quantized = quantized + quantized_at_[static_cast<std::size_t>(expert)],
                      .is_usual = flags_.take({experts.rows_of_slots() + slot, static_cast<std::size_t>(num_rows)})});
  }
}

// `out`: of the first slot.
void GpuExperts::multiply(const ExpertProjection& projection, const float* floats, GpuExpertRows& experts, Rows out) {
  const GpuMatrix& weight = gpu(*projection.weight);
  const std::int32_t num_experts = experts.shape().num_experts;
  const std::int64_t num_outputs = weight.num_rows / num_experts;
  CHECK(num_outputs % kernels::kRowsPerGroup == 0);
  const float* const bias = copies_.of(projection.bias, weight.num_rows);
  products_.clear();
  for (const std::int32_t expert : experts.busy_experts()) {
    const std::int64_t slot = experts.first_slot(expert);
    const auto at = static_cast<std::size_t>(expert);
    products_.push_back({.weight = &weight,
                         .first_group = expert * num_outputs / kernels::kRowsPerGroup,
                         .num_groups = num_outputs / kernels::kRowsPerGroup,
                         .x = floats + slot * weight.row_length,
                         .quantized = weight.reads_floats ? nullptr : experts.quantized.data() + quantized_at_[at],
                         .num_tokens = experts.num_rows_of(expert),
                         .out = {.data = out.row(slot), .stride = out.stride, .width = static_cast<std::int32_t>(num_outputs)},
                         .scale = weight.scales.empty() ? 1.0f : weight.scales[at],
                         .bias = bias == nullptr ? nullptr : bias + expert * num_outputs});
  }
  matmuls_.multiply(products_);
}

void GpuExperts::add_experts(const ExpertMlpOp& op, const GpuActivation& in, GpuExpertRows& experts, Rows out) {
  const std::int32_t width = experts.shape().intermediate_size, hidden = experts.shape().hidden_size;
  const std::int64_t num_slots = experts.num_slots();
  if (num_slots == 0) return;
  float* const gathered = experts.in.resize(num_slots * hidden);
  device_.gather_rows({.x = in.floats,
                       .x_stride = in.width,
                       .rows = experts.device_rows.data(),
                       .num_rows = static_cast<std::int32_t>(num_slots),
                       .width = hidden,
                       .out = gathered,
                       .out_stride = hidden});
  quantize(experts, gathered, hidden);
  const Rows gate_and_up{.data = experts.gate_and_up.resize(num_slots * 2 * width), .stride = 2 * width, .width = 2 * width};
  multiply(op.gate, gathered, experts, gate_and_up);
  if (op.up.weight != nullptr) {
    multiply(op.up, gathered, experts, {.data = gate_and_up.data + width, .stride = gate_and_up.stride, .width = width});
  }
  float* const intermediate = experts.intermediate.resize(num_slots * width);
  device_.elementwise({.function = elementwise_of(op.activation),
                       .a = gate_and_up.data,
                       .b = gate_and_up.data + width,
                       .n = width,
                       .out = intermediate,
                       .num_rows = static_cast<std::int32_t>(num_slots),
                       .a_stride = gate_and_up.stride,
                       .b_stride = gate_and_up.stride,
                       .out_stride = width});
  quantize(experts, intermediate, width);
  const Rows outputs{.data = experts.outputs.resize(num_slots * hidden), .stride = hidden, .width = hidden};
  multiply(op.down, intermediate, experts, outputs);
  device_.combine_rows({.x = outputs.data,
                        .x_stride = hidden,
                        .slots = experts.device_slots.data(),
                        .weights = experts.choice_weights.data(),
                        .num_rows = rows_.count(),
                        .num_choices = experts.shape().num_used,
                        .width = out.width,
                        .scale = op.scale,
                        .replaces = op.replaces,
                        .out = out.data,
                        .out_stride = out.stride});
}

void GpuExperts::add_gated(Rows gate_rows, Rows y, float scale, Rows out) {
  const std::int32_t num_rows = rows_.count();
  if (num_rows == 0) return;
  bring_home(gate_rows, num_rows, home_);
  home_gates_.resize(static_cast<std::size_t>(num_rows));
  for (std::int32_t row = 0; row < num_rows; ++row) {
    const float gate = home_[static_cast<std::size_t>(row * gate_rows.stride)];
    home_gates_[static_cast<std::size_t>(row)] = static_cast<float>(scale / (1.0 + std::exp(-double{gate})));
  }
  row_numbers_.resize(static_cast<std::size_t>(num_rows));
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0);
  device_.combine_rows({.x = y.data,
                        .x_stride = y.stride,
                        .slots = identity_.assign(row_numbers_),
                        .weights = gates_.assign(home_gates_),
                        .num_rows = num_rows,
                        .num_choices = 1,
                        .width = out.width,
                        .out = out.data,
                        .out_stride = out.stride});
}

}  // namespace kvasir::backend
