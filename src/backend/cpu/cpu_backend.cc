#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backend/cpu/cpu_tensors.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "quant/format.h"

namespace kvasir::backend {
namespace {

using kernels::kRowsPerGroup;
constexpr std::int64_t kTokensPerTile = kernels::kTokensPerActivationTile;

// Tokens of one matmul task: enough to share the decoding of its weights. Of float activations, as many as
// half of a small L2 cache holds.
constexpr std::int64_t kTokensPerTask = 128;
constexpr std::int64_t kFloatBytesPerTask = 256 << 10;
// A worker that is done waits for the others' last tasks, so tasks are small: a 32nd of a worker's part, but
// not so small that taking one costs more than its work.
constexpr std::int64_t kTasksPerWorker = 32;
constexpr std::int64_t kMinTaskBytes = 12 << 10;
constexpr std::int64_t kMaxGroupsPerTask = 32;

CpuActivation& cpu(Activation& activation) { return static_cast<CpuActivation&>(activation); }
const CpuActivation& cpu(const Activation& activation) {
  return static_cast<const CpuActivation&>(activation);
}
const CpuMatrix& cpu(const Matrix& matrix) { return static_cast<const CpuMatrix&>(matrix); }

}  // namespace

CpuBackend::CpuBackend(const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision)
    : kernels_(kernels),
      pool_(pool),
      precision_(precision),
      worker_rows_(static_cast<std::size_t>(pool.num_threads())),
      worker_scratch_(static_cast<std::size_t>(pool.num_threads())),
      forecast_(pool),
      greatest_(kernels, pool, forecast_) {}

CpuBackend::~CpuBackend() = default;

Result<std::unique_ptr<Matrix>> CpuBackend::make_matrix(const TensorView& tensor, MatrixUse use) {
  const kernels::FormatKernels& format = format_of(tensor.dtype);
  auto matrix = std::make_unique<CpuMatrix>();
  matrix->num_rows = tensor.num_rows();
  matrix->row_length = tensor.row_length();
  matrix->dtype = tensor.dtype;
  matrix->num_groups = ceil_div<std::int64_t>(tensor.num_rows(), kRowsPerGroup);
  if (use == MatrixUse::kSearchedHead && tensor.dtype == DType::kQ8_0 && precision_ == Precision::kExact) {
    matrix->split = &kernels_.split;
  }
  const auto allocate = [&](std::int64_t group_bytes) -> Result<AlignedBuffer> {
    const auto bytes = checked_mul(matrix->num_groups, group_bytes);
    if (!bytes)
      return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: too large to pack", tensor.name));
    matrix->packed_bytes += *bytes;
    return AlignedBuffer::allocate(*bytes);
  };
  const std::int64_t k = tensor.row_length();
  if (matrix->split != nullptr) {
    KVASIR_TRY(matrix->packed, allocate(matrix->split->high_group_bytes(k)));
    KVASIR_TRY(matrix->low, allocate(matrix->split->low_group_bytes(k)));
  } else {
    KVASIR_TRY(matrix->packed, allocate(format.packed_group_bytes(k)));
  }
  if (info_of(tensor.dtype).block_elements == 1) float_widths_.insert(tensor.row_length());
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
    if (target.split != nullptr) {
      target.split->pack_group(rows.row(first), file_row_bytes, count, k,
                               target.packed.data() + at * target.split->high_group_bytes(k),
                               target.low.data() + at * target.split->low_group_bytes(k));
    } else {
      format.pack_group(rows.row(first), file_row_bytes, count, k,
                        target.packed.data() + at * format.packed_group_bytes(k));
    }
  });
}

Result<std::unique_ptr<Activation>> CpuBackend::make_activation(std::int32_t max_rows, std::int32_t width) {
  auto activation = std::make_unique<CpuActivation>();
  activation->max_rows = max_rows;
  activation->width = width;
  const std::int64_t float_bytes =
      ceil_div<std::int64_t>(std::int64_t{max_rows} * width * 4, AlignedBuffer::kAlignment) *
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
  forecast_.begin_step();
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
  mass_.resize(batch.want_attention_mass ? batch.sequences.size() : 0);
  for (std::size_t i = 0; i < mass_.size(); ++i) mass_[i].assign(batch.kv_groups[0].blocks[i].size(), 0.0f);
}

void CpuBackend::plan_rope(std::span<const RopeTable> ropes) {
  const std::int32_t num_rows = batch_.num_rows();
  rope_styles_.clear();
  rope_half_dims_.clear();
  rope_offsets_.clear();
  std::int64_t total = 0;
  for (const RopeTable& rope : ropes) {
    rope_styles_.push_back(rope.style);
    rope_half_dims_.push_back(static_cast<std::int32_t>(rope.inverse_frequencies.size()));
    rope_offsets_.push_back(total);
    total += 2 * static_cast<std::int64_t>(rope.inverse_frequencies.size()) * num_rows;
  }
  rope_values_.resize(static_cast<std::size_t>(total));
  for (std::size_t table = 0; table < ropes.size(); ++table) {
    const auto& frequencies = ropes[table].inverse_frequencies;
    const auto half = static_cast<std::int64_t>(frequencies.size());
    for_rows(num_rows, half * 64, [&](std::int32_t row, int) {
      float* values = rope_values_.data() + rope_offsets_[table] + 2 * half * row;
      const double position = position_of_row_[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = position * frequencies[static_cast<std::size_t>(i)];
        values[i] = static_cast<float>(std::cos(angle));
        values[half + i] = static_cast<float>(std::sin(angle));
      }
    });
  }
}

float* CpuBackend::float_row(const CpuActivation& out, std::int32_t row, int worker) {
  return out.floats_are_read ? out.row(row) : worker_rows_[static_cast<std::size_t>(worker)].data();
}

void CpuBackend::quantize(CpuActivation& out, const float* floats, std::int32_t row, std::int32_t num_rows,
                          std::int32_t batch_row) {
  if (!out.is_quantized()) return;
  const auto quantize_row =
      precision_ == Precision::kFast ? kernels_.quantize_row_wide : kernels_.quantize_row;
  const bool finite = quantize_row(floats, out.width, row, num_rows, out.quantized);
  if (!finite) {
    const std::int32_t planned = planned_row_[static_cast<std::size_t>(batch_row)];
    non_finite_[static_cast<std::size_t>(planned)] = 1;
  }
}

void CpuBackend::embed(const TensorView& table, float scale, Rows x) {
  const quant::UnpackRow unpack = quant::unpack_row_of(table.dtype);
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

void CpuBackend::norm_add(Rows y, std::span<const float> weight, float eps, Rows x) {
  for_rows(batch_.num_rows(), x.width, [&](std::int32_t row, int) {
    kernels_.rms_norm(y.row(row), weight.data(), eps, y.width, y.row(row));
    kernels_.add(x.row(row), y.row(row), x.width, x.row(row));
  });
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
                              .num_wanted_rows = slice.num_wanted_rows});
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

void CpuBackend::gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) {
  CpuActivation& h = cpu(out);
  const auto multiply = kind == Gate::kSilu ? kernels_.silu_mul : kernels_.gelu_tanh_mul;
  for_rows(batch_.num_rows(), gate_rows.width, [&](std::int32_t row, int worker) {
    float* out_row = float_row(h, row, worker);
    multiply(gate_rows.row(row), up_rows.row(row), gate_rows.width, out_row);
    quantize(h, out_row, row, batch_.num_rows(), row);
  });
}

void CpuBackend::matmul(const Activation& in, std::span<const MatmulOp> ops) {
  run_matmul(cpu(in), batch_.num_rows(), ops, false);
}

void CpuBackend::matmul_add(const Activation& in, const Matrix& weight, Rows x) {
  const MatmulOp op{.weight = &weight, .out = x};
  run_matmul(cpu(in), batch_.num_rows(), {&op, 1}, true);
}

// Tasks are (matrix, run of row groups, run of tokens), token runs innermost so that a task's weights stay
// hot.
void CpuBackend::run_matmul(const CpuActivation& in, std::int32_t num_rows, std::span<const MatmulOp> ops,
                            bool accumulate) {
  constexpr std::size_t kMaxOps = 4;
  CHECK(ops.size() <= kMaxOps);
  std::int64_t num_groups = 0, num_bytes = 0;
  for (const MatmulOp& op : ops) {
    num_groups += cpu(*op.weight).num_groups;
    num_bytes += op.weight->packed_bytes;
  }
  const bool wants_maxima =
      std::ranges::any_of(ops, [](const MatmulOp& op) { return op.tile_maxima.data != nullptr; });
  const std::int64_t exact_panel = num_rows >= kernels::kLeastPanelTokens ? kernels::kGroupsPerPanel : 1;
  const std::int64_t panel = precision_ == Precision::kFast ? kernels::kGroupsPerWidePanel : exact_panel;
  const std::int64_t granule = panel * (wants_maxima ? kLogitsPerTile / kRowsPerGroup : 1);
  const std::int64_t least = std::min(kMaxGroupsPerTask, ceil_div(kMinTaskBytes * num_groups, num_bytes));
  const std::int64_t groups_per_task =
      ceil_div(std::clamp(num_groups / (kTasksPerWorker * pool_.num_threads()), least, kMaxGroupsPerTask),
               granule) *
      granule;
  const std::int64_t tokens_per_task =
      in.is_quantized()
          ? kTokensPerTask
          : std::clamp<std::int64_t>(kFloatBytesPerTask / (4 * in.width) / kTokensPerTile * kTokensPerTile,
                                     kTokensPerTile, kTokensPerTask);
  const std::int64_t token_tasks = ceil_div<std::int64_t>(num_rows, tokens_per_task);
  std::array<std::int64_t, kMaxOps + 1> first_task{};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    first_task[i + 1] =
        first_task[i] + token_tasks * ceil_div(cpu(*ops[i].weight).num_groups, groups_per_task);
  }
  const auto op_of = [&](std::int64_t task) {
    std::size_t i = 0;
    while (task >= first_task[i + 1]) ++i;
    return i;
  };
  forecast_.announce(first_task[ops.size()], [&](std::int64_t task) {
    const std::size_t i = op_of(task);
    const CpuMatrix& matrix = cpu(*ops[i].weight);
    const std::int64_t group = (task - first_task[i]) / token_tasks * groups_per_task;
    const std::int64_t group_bytes = matrix.split != nullptr
                                         ? matrix.split->high_group_bytes(matrix.row_length)
                                         : format_of(matrix.dtype).packed_group_bytes(matrix.row_length);
    return matrix.packed.data() + group * group_bytes;
  });
  pool_.parallel_for(first_task[ops.size()], [&](std::int64_t task) {
    const std::size_t i = op_of(task);
    const MatmulOp& op = ops[i];
    const CpuMatrix& matrix = cpu(*op.weight);
    const std::int64_t group = (task - first_task[i]) / token_tasks * groups_per_task;
    const std::int64_t token = (task - first_task[i]) % token_tasks * tokens_per_task;
    kernels::MatmulArgs args;
    args.weights = matrix.packed.data();
    args.low_weights = matrix.low.data();
    args.k = matrix.row_length;
    args.num_rows = matrix.num_rows;
    args.group_begin = group;
    args.group_end = std::min(matrix.num_groups, group + groups_per_task);
    args.num_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(tokens_per_task, num_rows - token));
    args.x = in.row(token);
    args.quantized = in.is_quantized() ? in.quantized + kernels_.activation_bytes(in.width, token) : nullptr;
    args.out = op.out.row(token);
    args.out_stride = op.out.stride;
    args.accumulate = accumulate;
    (matrix.split != nullptr ? matrix.split->matmul : format_of(matrix.dtype).matmul)(args);
    finish_matmul(op, args, token);
  });
}

// What comes after the products, while the outputs are in this worker's caches.
void CpuBackend::finish_matmul(const MatmulOp& op, const kernels::MatmulArgs& args, std::int64_t first_row) {
  const std::int64_t begin = args.group_begin * kRowsPerGroup;
  const std::int64_t end = std::min(args.num_rows, args.group_end * kRowsPerGroup);
  for (std::int64_t row = first_row; row < first_row + args.num_tokens; ++row) {
    float* out = op.out.row(row) + begin;
    if (op.bias != nullptr) kernels_.add(out, op.bias + begin, end - begin, out);
    if (op.tile_maxima.data != nullptr)
      kernels_.tile_maxima(out, end - begin, op.tile_maxima.row(row) + begin / kLogitsPerTile);
  }
}

void CpuBackend::rope_and_store(const RopeAndStoreOp& op) {
  const KvGroupView& group = batch_.kv_groups[static_cast<std::size_t>(op.group)];
  const std::int32_t head_dim = group.layout.head_dim;
  const auto rope = static_cast<std::size_t>(op.rope_index);
  const std::int32_t half = rope_half_dims_[rope];
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
    std::byte* block = group.blocks[static_cast<std::size_t>(sequence_of_row_[index])]
                                   [static_cast<std::size_t>(position / kernels::kTokensPerCell)];
    for (std::int32_t head = 0; head < group.layout.num_kv_heads; ++head) {
      kernels_.write_kv({.k = op.k.row(row) + std::int64_t{head} * head_dim,
                         .v = op.v.row(row) + std::int64_t{head} * head_dim,
                         .head_dim = head_dim,
                         .slot = position % kernels::kTokensPerCell,
                         .format = group.layout.format,
                         .k_cell = block + group.layout.k_offset(op.layer_in_group, head),
                         .v_cell = block + group.layout.v_offset(op.layer_in_group, head)});
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
  if (op.only_greatest && cpu(*op.weight).split != nullptr && num_rows <= GreatestLogits::kMaxRows) {
    greatest_.find(op, h.quantized, num_rows);
    return;
  }
  const MatmulOp product{.weight = op.weight, .out = op.logits, .tile_maxima = op.tile_maxima};
  run_matmul(h, num_rows, {&product, 1}, false);
}

}  // namespace kvasir::backend
