#include "backend/cpu/expert_executor.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "backend/cpu/gate_kernel.h"
#include "backend/cpu/row_loop.h"
#include "base/check.h"
#include "kernels/activation.h"

namespace kvasir::backend {
namespace {

constexpr std::int64_t kExpTimeInFloats = 16;  // of routing: an exponential of a double beside a float's work

}  // namespace

ExpertExecutor::ExpertExecutor(const kernels::KernelTable& kernels, ThreadPool& pool,
                               const MatmulExecutor& matmuls, ActivationQuantizer& quantizer, StepRows& rows)
    : kernels_(kernels),
      pool_(pool),
      matmuls_(matmuls),
      quantizer_(quantizer),
      rows_(rows),
      grouped_(kernels, pool, matmuls),
      worker_rows_(static_cast<std::size_t>(pool.num_threads())) {}

Result<std::unique_ptr<ExpertRows>> ExpertExecutor::make_expert_rows(const ExpertShape& shape,
                                                                     MemorySource& memory) {
  KVASIR_TRY(std::unique_ptr<CpuExpertRows> experts,
             CpuExpertRows::make(kernels_, shape,
                                 {.hidden = matmuls_.experts_read_floats(shape.hidden_size),
                                  .intermediate = keeps_inputs_of_down_ || matmuls_.experts_read_floats(shape.intermediate_size)},
                                 memory));
  const auto widest = static_cast<std::size_t>(std::max(shape.hidden_size, shape.intermediate_size));
  for (std::vector<float>& row : worker_rows_) row.resize(std::max(row.size(), 2 * widest));
  parts_.reserve(2 * static_cast<std::size_t>(shape.num_experts));
  return experts;
}

void ExpertExecutor::route(const RouteOp& op, CpuExpertRows& experts) {
  CHECK(op.rule.num_experts == experts.shape().num_experts && op.rule.num_used == experts.shape().num_used);
  for_rows(pool_, rows_.count(), op.rule.num_experts * kExpTimeInFloats, [&](std::int32_t row, int) {
    route_row(op.rule, op.logits.row(row), op.choice_bias, experts.experts(row), experts.weights(row));
  });
  experts.group(kernels_, rows_.count());
}

template <class F>
void ExpertExecutor::for_tiles(const CpuExpertRows& experts, std::int64_t floats_per_row, const F& fn) {
  const auto& tiles = experts.tiles();
  if (experts.num_slots() * floats_per_row <= kInlineFloats || pool_.num_threads() == 1) {
    for (const ExpertTile& tile : tiles) fn(tile, 0);
    return;
  }
  pool_.parallel_for(std::ssize(tiles), [&](std::int64_t task, int worker) {
    fn(tiles[static_cast<std::size_t>(task)], worker);
  });
}

// Copies each row to its experts.
void ExpertExecutor::gather(const CpuActivation& in, CpuExpertRows& experts) {
  const std::int64_t k = in.width, num_blocks = k / kernels::kActivationBlock;
  constexpr std::int64_t kTile = kernels::kTokensPerActivationTile;
  for_tiles(experts, k, [&](const ExpertTile& tile, int) {
    const std::int32_t num_rows = experts.num_rows_of(tile.expert);
    for (std::int32_t i = tile.first; i < tile.first + tile.count; ++i) {
      const std::int32_t slot = experts.first_slot(tile.expert) + i;
      const std::int64_t row = experts.row_of(slot);
      if (float* floats = experts.in.floats(slot)) std::copy_n(in.row(row), k, floats);
      if (!in.is_quantized()) continue;
      const std::int64_t column = row % kTile;
      const void* const quantized = in.quantized;
      kernels::copy_row(kernels::activation_tile(quantized, k, row - column, rows_.count()), column,
                        num_blocks,
                        kernels::activation_row(experts.in.quantized(tile.expert), k, i, num_rows));
    }
  });
}

// Adds the parts of one projection: to each busy expert its rows of `out`.
void ExpertExecutor::multiply(const ExpertProjection& projection, const GroupedActivation& in,
                              const CpuExpertRows& experts, Rows out) {
  const CpuMatrix& weight = cpu(*projection.weight);
  const std::int64_t num_outputs = weight.num_rows / experts.shape().num_experts;
  CHECK(num_outputs % kernels::kRowsPerGroup == 0 && weight.row_length == in.width());
  const std::int64_t num_groups = num_outputs / kernels::kRowsPerGroup;
  const auto num_idle = experts.shape().num_experts - std::ssize(experts.busy_experts());
  skipped_bytes_ += num_idle * num_groups * weight.group_bytes;
  const bool reads_floats = matmuls_.reads_floats(weight);
  for (const std::int32_t expert : experts.busy_experts()) {
    const std::int64_t slot = experts.first_slot(expert);
    parts_.push_back(
        {.weight = &weight,
         .first_group = expert * num_groups,
         .num_groups = num_groups,
         .scale = weight.scales.empty() ? 1.0f : weight.scales[static_cast<std::size_t>(expert)],
         .bias = projection.bias == nullptr ? nullptr : projection.bias + expert * num_outputs,
         .x = reads_floats ? in.floats(slot) : nullptr,
         .quantized = reads_floats ? nullptr : in.quantized(expert),
         .num_tokens = experts.num_rows_of(expert),
         .out = {
             .data = out.row(slot), .stride = out.stride, .width = static_cast<std::int32_t>(num_outputs)}});
  }
}

void ExpertExecutor::gate(Gate activation, CpuExpertRows& experts) {
  const GateKernel kernel = gate_kernel(kernels_, activation);
  const std::int32_t width = experts.shape().intermediate_size;
  const Rows gate_and_up = experts.gate_and_up();
  for_tiles(experts, width, [&](const ExpertTile& tile, int worker) {
    const std::int32_t num_rows = experts.num_rows_of(tile.expert);
    std::byte* const quantized = experts.intermediate.quantized(tile.expert);
    for (std::int32_t i = tile.first; i < tile.first + tile.count; ++i) {
      const std::int32_t slot = experts.first_slot(tile.expert) + i;
      float* const floats = experts.intermediate.floats(slot);
      float* const out = floats != nullptr ? floats : scratch_row(worker);
      kernel(gate_and_up.row(slot), gate_and_up.row(slot) + width, width, out);
      if (quantized == nullptr) continue;
      quantizer_.quantize_to(quantized, out, width, i, num_rows, experts.row_of(slot));
    }
  });
}

void ExpertExecutor::add_weighted(const ExpertMlpOp& op, CpuExpertRows& experts, Rows out) {
  const std::int32_t width = out.width, num_used = experts.shape().num_used;
  const Rows outputs = experts.outputs();
  for_rows(pool_, rows_.count(), std::int64_t{width} * num_used, [&](std::int32_t row, int worker) {
    float* const sum = scratch_row(worker);
    float* const product = sum + width;
    const float* const weights = experts.weights(row);
    kernels_.scale(outputs.row(experts.slot_of(row, 0)), weights[0], width, sum);
    for (std::int32_t choice = 1; choice < num_used; ++choice) {
      kernels_.scale(outputs.row(experts.slot_of(row, choice)), weights[choice], width, product);
      kernels_.add(sum, product, width, sum);
    }
    if (op.scale != 1.0f) kernels_.scale(sum, op.scale, width, sum);
    if (op.replaces) {
      std::copy_n(sum, width, out.row(row));
    } else {
      kernels_.add(out.row(row), sum, width, out.row(row));
    }
  });
}

void ExpertExecutor::add_experts(const ExpertMlpOp& op, const CpuActivation& in, CpuExpertRows& experts,
                                 Rows out) {
  const std::int32_t width = experts.shape().intermediate_size;
  const Rows gate_and_up = experts.gate_and_up();
  gather(in, experts);
  parts_.clear();
  multiply(op.gate, experts.in, experts, gate_and_up);
  if (op.up.weight != nullptr) {
    multiply(op.up, experts.in, experts,
             {.data = gate_and_up.data + width, .stride = gate_and_up.stride, .width = width});
  }
  grouped_.run(parts_);
  gate(op.activation, experts);
  parts_.clear();
  multiply(op.down, experts.intermediate, experts, experts.outputs());
  grouped_.run(parts_);
  add_weighted(op, experts, out);
}

void ExpertExecutor::add_gated(Rows gate_rows, Rows y, float scale, Rows out) {
  for_rows(pool_, rows_.count(), out.width, [&](std::int32_t row, int worker) {
    const double gate = scale / (1.0 + std::exp(-double{gate_rows.row(row)[0]}));
    float* const product = scratch_row(worker);
    kernels_.scale(y.row(row), static_cast<float>(gate), out.width, product);
    kernels_.add(out.row(row), product, out.width, out.row(row));
  });
}

}  // namespace kvasir::backend
