#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "backend/cpu/cpu_tensors.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "quant/dtype.h"

namespace kvasir::backend {
namespace {

using kernels::kRowsPerGroup;

}  // namespace

CpuBackend::CpuBackend(const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision)
    : kernels_(kernels),
      pool_(pool),
      precision_(precision),
      worker_rows_(static_cast<std::size_t>(pool.num_threads())),
      rope_angles_(pool.num_threads()),
      worker_scratch_(static_cast<std::size_t>(pool.num_threads())),
      asked_for_(static_cast<std::size_t>(pool.num_threads())),
      prefetcher_(pool),
      argmax_(kernels, pool, prefetcher_) {}

CpuBackend::~CpuBackend() = default;

Result<std::unique_ptr<Matrix>> CpuBackend::make_matrix(const TensorView& tensor, MatrixUse use) {
  const kernels::FormatKernels& format = format_of(tensor.dtype);
  auto matrix = std::make_unique<CpuMatrix>();
  matrix->num_rows = tensor.num_rows();
  matrix->row_length = tensor.row_length();
  matrix->dtype = tensor.dtype;
  matrix->num_groups = ceil_div<std::int64_t>(tensor.num_rows(), kRowsPerGroup);
  if (use == MatrixUse::kArgmaxHead && tensor.dtype == DType::kQ8_0 && precision_ == Precision::kExact) {
    matrix->nibble_planes = &kernels_.nibble_planes;
  }
  const auto allocate = [&](std::int64_t group_bytes) -> Result<AlignedBuffer> {
    const auto bytes = checked_mul(matrix->num_groups, group_bytes);
    if (!bytes)
      return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: too large to pack", tensor.name));
    matrix->packed_bytes += *bytes;
    return AlignedBuffer::allocate(*bytes);
  };
  const std::int64_t k = tensor.row_length();
  matrix->group_bytes = matrix->nibble_planes != nullptr ? matrix->nibble_planes->high_group_bytes(k)
                                                         : format.packed_group_bytes(k);
  KVASIR_TRY(matrix->packed, allocate(matrix->group_bytes));
  if (matrix->nibble_planes != nullptr) {
    KVASIR_TRY(matrix->low, allocate(matrix->nibble_planes->low_group_bytes(k)));
  }
  if (format.reads_floats) float_widths_.insert(tensor.row_length());
  return matrix;
}

void CpuBackend::pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) {
  auto& target = static_cast<CpuMatrix&>(matrix);
  CHECK(first_row % kRowsPerGroup == 0 && first_row + rows.num_rows() <= target.num_rows);
  const kernels::FormatKernels& format = format_of(target.dtype);
  const std::int64_t k = target.row_length;
  const std::int64_t file_row_bytes = row_bytes(target.dtype, k);
  const std::int64_t first_group = first_row / kRowsPerGroup;
  pool_.parallel_for(ceil_div<std::int64_t>(rows.num_rows(), kRowsPerGroup), [&](std::int64_t group) {
    const std::int64_t first = group * kRowsPerGroup;
    const auto count = static_cast<int>(std::min<std::int64_t>(kRowsPerGroup, rows.num_rows() - first));
    const std::int64_t at = first_group + group;
    std::byte* const packed = target.packed.data() + at * target.group_bytes;
    if (target.nibble_planes != nullptr) {
      target.nibble_planes->pack_group(rows.row(first), file_row_bytes, count, k, packed,
                                       target.low.data() + at * target.nibble_planes->low_group_bytes(k));
    } else {
      format.pack_group(rows.row(first), file_row_bytes, count, k, packed);
    }
  });
}

Result<std::unique_ptr<Activation>> CpuBackend::make_activation(std::int32_t max_rows, std::int32_t width) {
  auto activation = std::make_unique<CpuActivation>();
  activation->max_rows = max_rows;
  activation->width = width;
  const std::int64_t float_bytes = ceil_div<std::int64_t>(std::int64_t{max_rows} * width * 4,
                                                          AlignedBuffer::kAlignment) *
                                   AlignedBuffer::kAlignment;
  const bool quantizes = width % kernels::kActivationBlock == 0;
  KVASIR_TRY(
      activation->memory,
      AlignedBuffer::allocate(float_bytes + (quantizes ? kernels_.activation_bytes(width, max_rows) : 0)));
  activation->floats = reinterpret_cast<float*>(activation->memory.data());
  if (quantizes) activation->quantized = activation->memory.data() + float_bytes;
  activation->floats_are_read = !quantizes || float_widths_.contains(width);
  for (std::vector<float>& row : worker_rows_) {
    row.resize(std::max(row.size(), static_cast<std::size_t>(width)));
  }
  return activation;
}

Result<Rows> CpuBackend::make_rows(std::int32_t max_rows, std::int32_t width) {
  KVASIR_TRY(auto buffer, AlignedBuffer::allocate(std::int64_t{max_rows} * width * 4));
  row_buffers_.push_back(std::move(buffer));
  return Rows{.data = reinterpret_cast<float*>(row_buffers_.back().data()), .stride = width, .width = width};
}

std::int32_t CpuBackend::rows_of_task(std::int32_t num_rows, std::int64_t floats_per_row) const {
  constexpr std::int32_t kTile = kernels::kTokensPerActivationTile;
  const std::int32_t granule = num_rows / kTile >= 2 * pool_.num_threads() ? kTile : kTile / 4;
  const auto rows = static_cast<std::int32_t>(kInlineFloats / 4 / floats_per_row);
  return ceil_div(std::max(1, rows), granule) * granule;
}

void CpuBackend::plan(const BatchInput& batch, std::span<const RopeTable> ropes) {
  batch_ = batch;
  prefetcher_.begin_step(batch.runs_all_layers);
  const auto num_rows = static_cast<std::size_t>(batch.num_rows());
  non_finite_.assign(num_rows, 0);
  planned_row_.resize(num_rows);
  std::iota(planned_row_.begin(), planned_row_.end(), 0);
  sequence_of_row_.resize(num_rows);
  position_of_row_.resize(num_rows);
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& slice = batch.sequences[i];
    for (std::int32_t row = 0; row < slice.num_rows; ++row) {
      sequence_of_row_[static_cast<std::size_t>(slice.first_row + row)] = static_cast<std::int32_t>(i);
      position_of_row_[static_cast<std::size_t>(slice.first_row + row)] = slice.first_position + row;
    }
  }
  plan_rope(ropes);
  attention_.resize(batch.kv_groups.size());
  planned_group_size_.assign(batch.kv_groups.size(), 0);
  block_mass_.begin_step(batch);
}

void CpuBackend::plan_rope(std::span<const RopeTable> ropes) {
  const std::int32_t num_rows = batch_.num_rows();
  rope_angles_.set_ropes(ropes);
  rope_styles_.clear();
  rope_offsets_.clear();
  std::int64_t total = 0;
  for (const RopeTable& rope : ropes) {
    rope_styles_.push_back(rope.style);
    rope_offsets_.push_back(total);
    total += 2 * static_cast<std::int64_t>(rope.inverse_frequencies.size()) * num_rows;
  }
  rope_values_.resize(static_cast<std::size_t>(total));
  rope_is_computed_.assign(ropes.size(), 0);
}

// When the first layer asks: a step of some layers alone may need one kind of several.
void CpuBackend::compute_rope(std::size_t rope) {
  if (std::exchange(rope_is_computed_[rope], 1) != 0) return;
  const std::int64_t half = rope_angles_.half_dim(rope);
  for_rows(batch_.num_rows(), half * 64, [&](std::int32_t row, int worker) {
    rope_angles_.compute(rope, position_of_row_[static_cast<std::size_t>(row)], worker,
                         rope_values_.data() + rope_offsets_[rope] + 2 * half * row);
  });
}

float* CpuBackend::float_row(const CpuActivation& out, std::int32_t row, int worker) {
  return out.floats_are_read ? out.row(row) : worker_rows_[static_cast<std::size_t>(worker)].data();
}

void CpuBackend::quantize(CpuActivation& out, const float* floats, std::int32_t row, std::int32_t num_rows,
                          std::int32_t batch_row) {
  if (!out.is_quantized()) return;
  const auto quantize_row = precision_ == Precision::kFast ? kernels_.quantize_row_w8a8
                                                           : kernels_.quantize_row;
  const bool finite = quantize_row(floats, out.width, row, num_rows, out.quantized);
  if (!finite) mark_non_finite(batch_row);
}

void CpuBackend::mark_non_finite(std::int32_t batch_row) {
  const std::int32_t planned = planned_row_[static_cast<std::size_t>(batch_row)];
  non_finite_[static_cast<std::size_t>(planned)] = 1;
}

void CpuBackend::embed(const TensorView& table, float scale, Rows x) {
  const quant::UnpackRow unpack = info_of(table.dtype).unpack_row;
  for_rows(batch_.num_rows(), x.width, [&](std::int32_t row, int) {
    unpack(table.row(batch_.token_ids[static_cast<std::size_t>(row)]), x.width, x.row(row));
    if (scale != 1.0f) kernels_.scale(x.row(row), scale, x.width, x.row(row));
  });
}

void CpuBackend::norm(Rows x, std::span<const float> weight, float eps, Activation& out) {
  CpuActivation& h = cpu(out);
  for_rows(batch_.num_rows(), x.width, [&](std::int32_t row, int worker) {
    float* out_row = float_row(h, row, worker);
    kernels_.rms_norm(x.row(row), weight.data(), eps, x.width, out_row);
    quantize(h, out_row, row, batch_.num_rows(), row);
  });
}

void CpuBackend::norm_rows(Rows x, std::span<const float> weight, float eps, std::int32_t first_row,
                           std::int32_t num_rows, Rows out) {
  for_rows(num_rows, x.width, [&](std::int32_t i, int) {
    kernels_.rms_norm(x.row(first_row + i), weight.data(), eps, x.width, out.row(i));
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (!std::all_of(out.row(i), out.row(i) + x.width, is_finite)) mark_non_finite(first_row + i);
  });
}

void CpuBackend::norm_add(Rows y, std::span<const float> weight, float eps, Rows x) {
  for_rows(batch_.num_rows(), x.width, [&](std::int32_t row, int) {
    kernels_.rms_norm_add(y.row(row), weight.data(), eps, y.width, x.row(row));
  });
}

void CpuBackend::gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) {
  CpuActivation& h = cpu(out);
  const auto multiply = kind == Gate::kSilu ? kernels_.silu_mul : kernels_.gelu_tanh_mul;
  for_rows(batch_.num_rows(), gate_rows.width, [&](std::int32_t row, int worker) {
    float* out_row = float_row(h, row, worker);
    multiply(gate_rows.row(row), up_rows.row(row), gate_rows.width, out_row);
    quantize(h, out_row, row, batch_.num_rows(), row);
  });
}

void CpuBackend::rope_and_store(const RopeAndStoreOp& op) {
  const KvGroupView& group = batch_.kv_groups[static_cast<std::size_t>(op.group)];
  const std::int32_t head_dim = group.layout.head_dim;
  const auto rope = static_cast<std::size_t>(op.rope_index);
  compute_rope(rope);
  const std::int32_t half = rope_angles_.half_dim(rope);
  for_rows(batch_.num_rows(), op.q.width + 2 * op.k.width, [&](std::int32_t row, int) {
    const float* cos = rope_values_.data() + rope_offsets_[rope] + std::int64_t{2} * half * row;
    const auto turn = [&](Rows rows, const float* norm_weight) {
      for (float* head = rows.row(row); head < rows.row(row) + rows.width; head += head_dim) {
        if (norm_weight != nullptr) kernels_.rms_norm(head, norm_weight, op.norm_eps, head_dim, head);
        kernels_.rope(head, cos, cos + half, 2 * half, rope_styles_[rope]);
      }
    };
    turn(op.q, op.q_norm);
    turn(op.k, op.k_norm);
    const auto index = static_cast<std::size_t>(row);
    const std::int32_t position = position_of_row_[index];
    const BlockId block = group.blocks[static_cast<std::size_t>(sequence_of_row_[index])]
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
      if (!are_finite) mark_non_finite(row);
    }
  });
}

void CpuBackend::head(const HeadOp& op, std::int32_t first_row, std::int32_t num_rows, Activation& scratch) {
  CpuActivation& h = cpu(scratch);
  CHECK(num_rows <= h.max_rows);
  for_rows(num_rows, op.x.width, [&](std::int32_t i, int worker) {
    const std::int32_t row = first_row + i;
    float* out_row = float_row(h, i, worker);
    kernels_.rms_norm(op.x.row(row), op.norm_weight.data(), op.norm_eps, op.x.width, out_row);
    quantize(h, out_row, i, num_rows, row);
  });
  if (op.argmax_of && cpu(*op.weight).nibble_planes != nullptr && num_rows <= BoundedArgmax::kMaxRows) {
    argmax_.find(op, h.quantized, num_rows);
    return;
  }
  const MatmulOp product{.weight = op.weight, .out = op.logits, .tile_maxima = op.tile_maxima};
  run_matmul(h, num_rows, {&product, 1}, false);
}

}  // namespace kvasir::backend
