#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "backend/cpu/gate_kernel.h"
#include "backend/cpu/row_loop.h"
#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::backend {

CpuBackend::CpuBackend(const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision,
                       MemorySource& memory)
    : kernels_(kernels),
      pool_(pool),
      memory_(memory),
      prefetcher_(pool),
      quantizer_(kernels, pool, precision, rows_),
      matmuls_(kernels, pool, precision, prefetcher_),
      adapters_(kernels, pool, matmuls_, rows_),
      experts_(kernels, pool, matmuls_, quantizer_, rows_),
      rope_(kernels, pool, rows_),
      attention_(kernels, pool, prefetcher_, rows_),
      cells_(kernels, pool),
      argmax_(kernels, pool, prefetcher_),
      looked_up_(static_cast<std::size_t>(pool.num_threads())) {}

CpuBackend::~CpuBackend() = default;

Result<std::unique_ptr<Matrix>> CpuBackend::make_matrix(const TensorView& tensor, MatrixUse use) {
  return matmuls_.make_matrix(tensor, use, memory_);
}

void CpuBackend::pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) {
  matmuls_.pack_rows(rows, first_row, matrix);
}

Result<std::unique_ptr<Matrix>> CpuBackend::adopt_matrix(const TensorView& tensor, MatrixUse use,
                                                         std::span<const std::byte> packed) {
  return matmuls_.adopt_matrix(tensor, use, packed);
}

Result<PackedSize> CpuBackend::packed_size(const TensorView& tensor, MatrixUse use) const {
  return matmuls_.packed_size(tensor, use);
}

Result<std::unique_ptr<Activation>> CpuBackend::make_activation(std::int32_t max_rows, std::int32_t width) {
  return quantizer_.make(max_rows, width, {matmuls_.reads_floats(width) || expects_adapters_, matmuls_.reads_quantized(width)},
                         memory_);
}

Result<Rows> CpuBackend::make_rows(std::int32_t max_rows, std::int32_t width) {
  KVASIR_TRY(auto buffer, memory_.allocate(std::int64_t{max_rows} * width * 4));
  row_buffers_.push_back(std::move(buffer));
  return Rows{.data = reinterpret_cast<float*>(row_buffers_.back().data()), .stride = width, .width = width};
}

Result<std::unique_ptr<ExpertRows>> CpuBackend::make_expert_rows(const ExpertShape& shape) {
  return experts_.make_expert_rows(shape, memory_);
}

Result<std::unique_ptr<Adapter>> CpuBackend::make_adapter(std::span<const AdapterPart> parts) {
  return adapters_.make_adapter(parts, memory_);
}

void CpuBackend::plan(const BatchInput& batch, std::span<const RopeTable> ropes) {
  rows_.begin_step(batch);
  prefetcher_.begin_step(batch.runs_all_layers);
  rope_.begin_step(ropes);
  attention_.begin_step();
}

void CpuBackend::convert_cells(std::span<const kv::CellConversion> conversions, std::byte* memory) {
  cells_.convert_cells(conversions, memory);
}

void CpuBackend::read_cell(const std::byte* cell, std::span<std::byte> bytes) { std::memcpy(bytes.data(), cell, bytes.size()); }

void CpuBackend::write_row(std::span<const float> floats, const Rows& rows, std::int64_t row) {
  CHECK(std::ssize(floats) <= rows.width);
  std::ranges::copy(floats, rows.row(row));
}

void CpuBackend::measure_blocks(const MeasureBlocksOp& op) {
  cells_.measure_blocks(op, rows_.group(op.group));
}

void CpuBackend::embed(const EmbedOp& op, Rows x) {
  const quant::UnpackRow unpack = info_of(op.table->dtype).unpack_row;
  const BatchInput& batch = rows_.batch();
  const auto add_row = [&](std::span<const float> table, std::int64_t index, std::int32_t row) {
    kernels_.add(x.row(row), table.data() + index * x.width, x.width, x.row(row));
  };
  for_rows(pool_, rows_.count(), x.width, [&](std::int32_t row, int) {
    const auto i = static_cast<std::size_t>(row);
    unpack(op.table->row(batch.token_ids[i]), x.width, x.row(row));
    if (op.scale != 1.0f) kernels_.scale(x.row(row), op.scale, x.width, x.row(row));
    if (!op.types.empty()) add_row(op.types, batch.token_types.empty() ? 0 : batch.token_types[i], row);
    if (!op.positions.empty()) add_row(op.positions, rows_.position_of(row), row);
  });
}

void CpuBackend::embed_parts(const EmbedPartsOp& op) {
  const quant::UnpackRow unpack = info_of(op.table->dtype).unpack_row;
  const std::span<const TokenId> tokens = rows_.batch().token_ids;
  const std::int64_t width = op.x.width, part_width = std::ssize(op.weight);
  for (std::vector<float>& row : looked_up_) row.resize(std::max(row.size(), static_cast<std::size_t>(width)));
  for_rows(pool_, rows_.count(), 2 * width, [&](std::int32_t row, int worker) {
    float* const x = op.x.row(row);
    float* const looked_up = looked_up_[static_cast<std::size_t>(worker)].data();
    unpack(op.table->row(tokens[static_cast<std::size_t>(row)]), width, looked_up);
    for (float* part = x; part < x + width; part += part_width) {
      kernels_.rms_norm(part, op.weight.data(), op.eps, part_width, part);
    }
    kernels_.add_scaled(looked_up, op.scale, width, x);
  });
}

void CpuBackend::norm_in_place(Rows x, const Norm& norm) {
  for_rows(pool_, rows_.count(), x.width,
           [&](std::int32_t row, int) { norm_row(norm, x.row(row), x.width, x.row(row)); });
}

void CpuBackend::norm_row(const Norm& norm, const float* x, std::int32_t width, float* out) const {
  switch (norm.kind) {
    case NormKind::kNone:
      std::copy(x, x + width, out);
      break;
    case NormKind::kRms:
      kernels_.rms_norm(x, norm.weight.data(), norm.eps, width, out);
      break;
    case NormKind::kLayer:
      kernels_.layer_norm(x, norm.weight.data(), norm.bias.data(), norm.eps, width, out);
      break;
  }
}

template <class RowOf>
void CpuBackend::norm_into(Rows x, const Norm& norm, std::int32_t num_rows, const RowOf& row_of, CpuActivation& out) {
  for_rows(pool_, num_rows, x.width, [&](std::int32_t i, int worker) {
    const std::int32_t row = row_of(i);
    float* out_row = quantizer_.float_row(out, i, worker);
    norm_row(norm, x.row(row), x.width, out_row);
    quantizer_.quantize(out, out_row, i, num_rows, row);
  });
}

void CpuBackend::norm(Rows x, const Norm& norm, Activation& out) {
  norm_into(x, norm, rows_.count(), [](std::int32_t row) { return row; }, cpu(out));
}

void CpuBackend::norm_rows(Rows x, const Norm& norm, std::int32_t first_row, std::int32_t num_rows,
                           Rows out) {
  for_rows(pool_, num_rows, x.width, [&](std::int32_t i, int) {
    norm_row(norm, x.row(first_row + i), x.width, out.row(i));
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (!std::all_of(out.row(i), out.row(i) + x.width, is_finite)) rows_.mark_non_finite(first_row + i);
  });
}

void CpuBackend::norm_add(const NormAddOp& op) {
  const auto norm = op.replaces ? kernels_.rms_norm : kernels_.rms_norm_add;
  for_rows(pool_, rows_.count(), op.x.width, [&](std::int32_t row, int) {
    float* const x = op.x.row(row);
    norm(op.y.row(row), op.weight.data(), op.eps, op.y.width, x);
    if (op.scale != 1.0f) kernels_.scale(x, op.scale, op.x.width, x);
  });
}

void CpuBackend::gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) {
  CpuActivation& h = cpu(out);
  const GateKernel multiply = gate_kernel(kernels_, kind);
  for_rows(pool_, rows_.count(), gate_rows.width, [&](std::int32_t row, int worker) {
    float* out_row = quantizer_.float_row(h, row, worker);
    const float* up = up_rows.data == nullptr ? nullptr : up_rows.row(row);
    multiply(gate_rows.row(row), up, gate_rows.width, out_row);
    quantizer_.quantize(h, out_row, row, rows_.count(), row);
  });
}

void CpuBackend::route(const RouteOp& op, ExpertRows& rows) {
  experts_.route(op, static_cast<CpuExpertRows&>(rows));
}

void CpuBackend::add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) {
  experts_.add_experts(op, cpu(in), static_cast<CpuExpertRows&>(rows), out);
}

void CpuBackend::add_gated(Rows gate_rows, Rows y, float scale, Rows out) {
  experts_.add_gated(gate_rows, y, scale, out);
}

void CpuBackend::matmul(const Activation& in, std::span<const MatmulOp> ops) {
  matmuls_.run(cpu(in), rows_.count(), ops, false, adapters_.begin(cpu(in), ops));
  adapters_.finish();
}

void CpuBackend::matmul_add(const Activation& in, const MatmulOp& op) {
  CHECK(op.weight->scales.empty());
  matmuls_.run(cpu(in), rows_.count(), {&op, 1}, true, adapters_.begin(cpu(in), {&op, 1}));
  adapters_.finish();
}

void CpuBackend::add(Rows y, float factor, Rows x) {
  for_rows(pool_, rows_.count(), x.width,
           [&](std::int32_t row, int) { kernels_.add_scaled(y.row(row), factor, x.width, x.row(row)); });
}

void CpuBackend::rope_and_store(const RopeAndStoreOp& op) { rope_.rope_and_store(op); }

void CpuBackend::attend(const AttendOp& op, Activation& out) { run_attention(op, true, out); }

void CpuBackend::run_attention(const AttendOp& op, bool is_scored, Activation& out) {
  CpuActivation& attn = cpu(out);
  attention_.attend(op, is_scored, attn);
  for_rows(pool_, rows_.count(), attn.width,
           [&](std::int32_t row, int) { quantizer_.quantize(attn, attn.row(row), row, rows_.count(), row); });
}

// To the numbers that the kept rows have now.
void CpuBackend::move_kept(const Rows& rows) const {
  std::int32_t to = 0;  // upwards: no row is overwritten before it has moved
  for (const std::int32_t from : rows_.kept()) {
    std::memmove(rows.row(to++), rows.row(from), static_cast<std::size_t>(rows.width) * sizeof(float));
  }
}

std::int32_t CpuBackend::attend_wanted_rows(const AttendOp& op, std::span<const Rows> rows, bool is_last,
                                            Activation& out) {
  const bool loses_observed = rows_.loses_observed();
  if (loses_observed) attend(op, out);  // for the attention score that it leaves
  if (loses_observed && !is_last) return rows_.count();
  const std::int32_t num_planned = rows_.count();
  const std::int32_t count = rows_.keep_wanted();
  for (const Rows& moved : rows) move_kept(moved);
  move_kept(op.q);
  if (count != num_planned) {
    attention_.forget_plans();
    rope_.forget_angles();
  }
  if (count > 0) run_attention(op, !loses_observed, out);
  return count;
}

void CpuBackend::head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) {
  CpuActivation& h = cpu(scratch);
  const auto num_rows = static_cast<std::int32_t>(rows.size());
  CHECK(num_rows <= h.max_rows);
  norm_into(op.x, op.norm, num_rows, [rows](std::int32_t i) { return rows[static_cast<std::size_t>(i)]; }, h);
  const CpuMatrix& weight = cpu(*op.weight);
  if (!op.groups.empty()) {
    matmuls_.run_groups(h, num_rows, {.weight = op.weight, .out = op.logits}, op.groups);
    return;
  }
  if (op.argmax_of && weight.nibble_planes != nullptr && weight.scales.empty() && num_rows <= BoundedArgmax::kMaxRows) {
    argmax_.find(op, h.quantized, num_rows);
    return;
  }
  const MatmulOp product{.weight = op.weight, .out = op.logits, .tile_maxima = op.tile_maxima};
  matmuls_.run(h, num_rows, {&product, 1}, false);
}

void CpuBackend::scale_and_cap(std::span<float> logits, float scale, float cap) {
  constexpr std::int64_t kLogitsPerTask = 8192;
  const auto count = std::ssize(logits);
  pool_.parallel_for(ceil_div(count, kLogitsPerTask), [&](std::int64_t task) {
    float* x = logits.data() + task * kLogitsPerTask;
    const std::int64_t n = std::min(kLogitsPerTask, count - task * kLogitsPerTask);
    if (scale != 1.0f) kernels_.scale(x, scale, n, x);
    if (cap > 0.0f) kernels_.soft_cap(x, cap, n, x);
  });
}

}  // namespace kvasir::backend
