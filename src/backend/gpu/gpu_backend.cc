#include "backend/gpu/gpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend/cpu/row_loop.h"
#include "base/check.h"

namespace kvasir::backend {
namespace {

std::unexpected<Error> no_room(const char* what, std::int64_t num_bytes) {
  return make_error(ErrorKind::kMachine, fmt::format("the device has no room for {} of {} bytes", what, num_bytes));
}

}  // namespace

GpuBackend::GpuBackend(std::unique_ptr<GpuDevice> device, const kernels::KernelTable& kernels, ThreadPool& pool,
                       Precision precision)
    : kernels_(kernels),
      pool_(pool),
      device_(std::move(device)),
      copies_(*device_),
      flags_(*device_, rows_),
      matmuls_(*device_, kernels, pool, precision, copies_),
      experts_(*device_, kernels, matmuls_, copies_, rows_, flags_),
      cells_(*device_, rows_),
      rope_(*device_, copies_, kernels, pool, rows_, flags_, cells_),
      attention_(*device_, copies_, rows_, cells_),
      looked_up_(*device_),
      moved_(*device_),
      indices_(*device_) {}

GpuBackend::~GpuBackend() {
  for (float* const rows : row_buffers_) device_->free(rows);
  for (std::byte* const cells : cell_memories_) device_->free(cells);
}

Status GpuBackend::check_cells(kv::KvFormat format) const {
  if (format == kv::KvFormat::kF16 || format == kv::KvFormat::kF32) return {};
  return make_error(ErrorKind::kUsage, fmt::format("kv_type: the device keeps f16 and f32, not {}", name_of(format)),
                    "kv_type");
}

Result<std::unique_ptr<Activation>> GpuBackend::make_activation(std::int32_t max_rows, std::int32_t width) {
  auto made = std::make_unique<GpuActivation>(*device_);
  made->max_rows = max_rows;
  made->width = width;
  const std::int64_t num_bytes = std::int64_t{max_rows} * width * 4;
  made->floats = reinterpret_cast<float*>(device_->allocate(num_bytes));
  const bool quantizes = width % kernels::kActivationBlock == 0 && matmuls_.reads_quantized(width);
  if (quantizes) made->quantized = device_->allocate(kernels_.activation_bytes(width, max_rows));
  if (made->floats == nullptr || (quantizes && made->quantized == nullptr)) return no_room("activations", num_bytes);
  return made;
}

Result<Rows> GpuBackend::make_rows(std::int32_t max_rows, std::int32_t width) {
  const std::int64_t num_bytes = std::int64_t{max_rows} * width * 4;
  auto* const floats = reinterpret_cast<float*>(device_->allocate(num_bytes));
  if (floats == nullptr && num_bytes > 0) return no_room("rows", num_bytes);
  row_buffers_.push_back(floats);
  widest_rows_bytes_ = std::max(widest_rows_bytes_, num_bytes);
  return Rows{.data = floats, .stride = width, .width = width};
}

// Rows of a table that were looked up, rows on their way, the heads' maxima and sums; partial results of attention, of
// which a few rows may take more than their share; outputs that the host sends; and references of cells, at most 8 bytes
// to 2 KiB of a cell.
std::int64_t GpuBackend::scratch_bytes() const {
  constexpr std::int64_t kSmallArraysBytes = 16 << 20, kReferencesPart = 128;
  const std::int64_t sent_bytes = matmuls_.host_weight_bytes() > 0 ? widest_rows_bytes_ + expert_bytes_ : 0;
  return 3 * widest_rows_bytes_ + expert_bytes_ + sent_bytes + 2 * attention_.scratch_bytes() +
         std::min(device_->limit_bytes() / 64, kSmallArraysBytes) + device_->limit_bytes() / kReferencesPart;
}

Result<std::unique_ptr<ExpertRows>> GpuBackend::make_expert_rows(const ExpertShape& shape) {
  const std::int64_t num_slots = std::int64_t{shape.max_rows} * shape.num_used;
  const std::int64_t widest = std::max(shape.hidden_size, shape.intermediate_size);
  expert_bytes_ = std::max(expert_bytes_, num_slots * 4 * (2 * shape.hidden_size + 3 * shape.intermediate_size) +
                                              kernels_.activation_bytes(widest, num_slots));
  return std::make_unique<GpuExpertRows>(shape, *device_);
}

// Borrowed: it is freed with the backend.
Result<AlignedBuffer> GpuBackend::make_cell_memory(std::int64_t num_bytes) {
  std::byte* const cells = device_->allocate(num_bytes);
  if (cells == nullptr && num_bytes > 0) return no_room("KV cells", num_bytes);
  cell_memories_.push_back(cells);
  return AlignedBuffer::borrow({cells, static_cast<std::size_t>(num_bytes)});
}

std::span<const std::byte> GpuBackend::host_bytes(const Matrix& matrix) {
  if (gpu(matrix).host != nullptr) return gpu(matrix).host->bytes();
  host_bytes_.resize(static_cast<std::size_t>(matrix.packed_bytes));
  device_->copy_out(gpu(matrix).packed, host_bytes_);
  return host_bytes_;
}

std::span<float> GpuBackend::host_row(const Rows& rows, std::int64_t row) {
  std::vector<float>& home = host_rows_.emplace_back(static_cast<std::size_t>(rows.width));
  device_->copy_out(rows.row(row), std::as_writable_bytes(std::span(home)));
  return home;
}

void GpuBackend::write_row(std::span<const float> floats, const Rows& rows, std::int64_t row) {
  CHECK(std::ssize(floats) <= rows.width);
  device_->copy_in(std::as_bytes(floats), rows.row(row));
}

void GpuBackend::plan(const BatchInput& batch, std::span<const RopeTable> ropes) {
  host_rows_.clear();
  rows_.begin_step(batch);
  flags_.begin_step();
  cells_.begin_step();
  rope_.begin_step(ropes);
  attention_.begin_step();
}

// Copies alone: check_cells() refuses the formats that cells are converted to.
void GpuBackend::convert_cells(std::span<const kv::CellConversion> conversions, std::byte* memory) {
  for (const kv::CellConversion& conversion : conversions) {
    CHECK(conversion.from.format() == conversion.to.format());
    host_bytes_.resize(static_cast<std::size_t>(kv::cell_bytes(conversion.from.format(), conversion.head_dim)));
    device_->copy_out(memory + conversion.from.offset(), host_bytes_);
    device_->copy_in(host_bytes_, memory + conversion.to.offset());
  }
}

void GpuBackend::read_cell(const std::byte* cell, std::span<std::byte> bytes) { device_->copy_out(cell, bytes); }

void GpuBackend::measure_blocks(const MeasureBlocksOp& op) { CHECK(op.blocks.empty()); }

// Tables lie in the model's file: the host looks rows up.
void GpuBackend::embed(const EmbedOp& op, Rows x) {
  const quant::UnpackRow unpack = info_of(op.table->dtype).unpack_row;
  const BatchInput& batch = rows_.batch();
  const std::int32_t width = x.width, num_rows = rows_.count();
  CHECK(x.stride == width);
  home_rows_.resize(static_cast<std::size_t>(num_rows) * static_cast<std::size_t>(width));
  for_rows(pool_, num_rows, width, [&](std::int32_t row, int) {
    const auto i = static_cast<std::size_t>(row);
    float* const out = home_rows_.data() + std::int64_t{row} * width;
    const auto add_row = [&](std::span<const float> table, std::int64_t index) {
      kernels_.add(out, table.data() + index * width, width, out);
    };
    unpack(op.table->row(batch.token_ids[i]), width, out);
    if (op.scale != 1.0f) kernels_.scale(out, op.scale, width, out);
    if (!op.types.empty()) add_row(op.types, batch.token_types.empty() ? 0 : batch.token_types[i]);
    if (!op.positions.empty()) add_row(op.positions, rows_.position_of(row));
  });
  device_->copy_in(std::as_bytes(std::span(home_rows_)), x.data);
}

void GpuBackend::embed_parts(const EmbedPartsOp& op) {
  const quant::UnpackRow unpack = info_of(op.table->dtype).unpack_row;
  const std::span<const TokenId> tokens = rows_.batch().token_ids;
  const std::int32_t width = op.x.width, part_width = static_cast<std::int32_t>(std::ssize(op.weight));
  home_rows_.resize(static_cast<std::size_t>(rows_.count()) * static_cast<std::size_t>(width));
  for_rows(pool_, rows_.count(), width, [&](std::int32_t row, int) {
    unpack(op.table->row(tokens[static_cast<std::size_t>(row)]), width, home_rows_.data() + std::int64_t{row} * width);
  });
  device_->norm({.x = op.x.data,
                 .x_stride = op.x.stride,
                 .width = part_width,
                 .num_rows = rows_.count(),
                 .num_parts = width / part_width,
                 .weight = copies_.of(op.weight),
                 .eps = op.eps,
                 .out = op.x.data,
                 .out_stride = op.x.stride});
  device_->elementwise({.function = cuda::Elementwise::kAddScaled,
                        .a = looked_up_.assign(home_rows_),
                        .factor = op.scale,
                        .n = width,
                        .out = op.x.data,
                        .num_rows = rows_.count(),
                        .a_stride = width,
                        .out_stride = op.x.stride});
}

void GpuBackend::norm_run(Rows x, const Norm& norm, std::int32_t first, std::int32_t count, Rows out) {
  if (count == 0) return;
  if (norm.kind == NormKind::kNone) {
    if (out.data == x.row(first)) return;
    device_->gather_rows({.x = x.row(first),
                          .x_stride = x.stride,
                          .num_rows = count,
                          .width = x.width,
                          .out = out.data,
                          .out_stride = out.stride});
    return;
  }
  device_->norm({.kind = norm.kind == NormKind::kRms ? cuda::RowNorm::kRms : cuda::RowNorm::kLayer,
                 .x = x.row(first),
                 .x_stride = x.stride,
                 .width = x.width,
                 .num_rows = count,
                 .weight = copies_.of(norm.weight),
                 .bias = copies_.of(norm.bias),
                 .eps = norm.eps,
                 .out = out.data,
                 .out_stride = out.stride});
}

void GpuBackend::finish(GpuActivation& out, std::int32_t num_rows, std::uint8_t* flags) {
  if (num_rows == 0) return;
  if (out.quantized == nullptr) {
    device_->finite_rows({.x = out.floats, .x_stride = out.width, .num_rows = num_rows, .width = out.width, .is_finite = flags});
    return;
  }
  device_->quantize({.w8a8 = matmuls_.reads_w8a8(),
                     .x = out.floats,
                     .x_stride = out.width,
                     .k = out.width,
                     .num_tokens = num_rows,
                     .quantized = out.quantized,
                     .is_usual = flags});
}

void GpuBackend::norm_in_place(Rows x, const Norm& norm) { norm_run(x, norm, 0, rows_.count(), x); }

void GpuBackend::norm(Rows x, const Norm& norm, Activation& out) {
  norm_run(x, norm, 0, rows_.count(), gpu(out).rows());
  finish(gpu(out), rows_.count(), flags_.take(rows_.count()));
}

void GpuBackend::norm_rows(Rows x, const Norm& norm, std::int32_t first_row, std::int32_t num_rows, Rows out) {
  norm_run(x, norm, first_row, num_rows, out);
  if (num_rows == 0) return;
  std::vector<std::int32_t> rows;
  for (std::int32_t row = first_row; row < first_row + num_rows; ++row) rows.push_back(row);
  device_->finite_rows({.x = out.data, .x_stride = out.stride, .num_rows = num_rows, .width = x.width,
                        .is_finite = flags_.take(std::span<const std::int32_t>(rows))});
}

void GpuBackend::norm_add(const NormAddOp& op) {
  if (rows_.count() == 0) return;
  device_->norm({.kind = op.replaces ? cuda::RowNorm::kRms : cuda::RowNorm::kRmsAdd,
                 .x = op.y.data,
                 .x_stride = op.y.stride,
                 .width = op.y.width,
                 .num_rows = rows_.count(),
                 .weight = copies_.of(op.weight),
                 .eps = op.eps,
                 .out = op.x.data,
                 .out_stride = op.x.stride});
  if (op.scale == 1.0f) return;
  device_->elementwise({.function = cuda::Elementwise::kScale,
                        .a = op.x.data,
                        .factor = op.scale,
                        .n = op.x.width,
                        .out = op.x.data,
                        .num_rows = rows_.count(),
                        .a_stride = op.x.stride,
                        .out_stride = op.x.stride});
}

void GpuBackend::matmul(const Activation& in, std::span<const MatmulOp> ops) {
  matmuls_.run(gpu(in), rows_.count(), ops, false);
}

void GpuBackend::matmul_add(const Activation& in, const MatmulOp& op) {
  CHECK(op.weight->scales.empty());
  matmuls_.run(gpu(in), rows_.count(), {&op, 1}, true);
}

void GpuBackend::add(Rows y, float factor, Rows x) {
  if (rows_.count() == 0) return;
  device_->elementwise({.function = cuda::Elementwise::kAddScaled,
                        .a = y.data,
                        .factor = factor,
                        .n = x.width,
                        .out = x.data,
                        .num_rows = rows_.count(),
                        .a_stride = y.stride,
                        .out_stride = x.stride});
}

void GpuBackend::attend(const AttendOp& op, Activation& out) { run_attention(op, true, out); }

void GpuBackend::run_attention(const AttendOp& op, bool is_scored, Activation& out) {
  attention_.attend(op, is_scored, gpu(out));
  finish(gpu(out), rows_.count(), flags_.take(rows_.count()));
}

void GpuBackend::move_kept(const Rows& rows) {
  const auto count = static_cast<std::int32_t>(rows_.kept().size());
  if (count == 0) return;
  float* const moved = moved_.resize(std::int64_t{count} * rows.width);
  device_->gather_rows({.x = rows.data,
                        .x_stride = rows.stride,
                        .rows = indices_.assign(rows_.kept()),
                        .num_rows = count,
                        .width = rows.width,
                        .out = moved,
                        .out_stride = rows.width});
  device_->gather_rows({.x = moved,
                        .x_stride = rows.width,
                        .num_rows = count,
                        .width = rows.width,
                        .out = rows.data,
                        .out_stride = rows.stride});
}

std::int32_t GpuBackend::attend_wanted_rows(const AttendOp& op, std::span<const Rows> rows, bool is_last,
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

void GpuBackend::gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) {
  const std::int32_t num_rows = rows_.count();
  if (num_rows == 0) return;
  device_->elementwise({.function = elementwise_of(kind),
                        .a = gate_rows.data,
                        .b = up_rows.data,
                        .n = gate_rows.width,
                        .out = gpu(out).floats,
                        .num_rows = num_rows,
                        .a_stride = gate_rows.stride,
                        .b_stride = up_rows.stride,
                        .out_stride = gpu(out).width});
  finish(gpu(out), num_rows, flags_.take(num_rows));
}

void GpuBackend::route(const RouteOp& op, ExpertRows& rows) { experts_.route(op, static_cast<GpuExpertRows&>(rows)); }

void GpuBackend::add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) {
  experts_.add_experts(op, gpu(in), static_cast<GpuExpertRows&>(rows), out);
}

void GpuBackend::head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) {
  GpuActivation& h = gpu(scratch);
  const auto num_rows = static_cast<std::int32_t>(rows.size());
  CHECK(num_rows <= h.max_rows);
  for (std::int32_t i = 0; i < num_rows;) {  // rows that follow each other at once
    std::int32_t count = 1;
    while (i + count < num_rows && rows[static_cast<std::size_t>(i + count)] == rows[static_cast<std::size_t>(i)] + count) ++count;
    Rows out = h.rows();
    out.data = out.row(i);
    norm_run(op.x, op.norm, rows[static_cast<std::size_t>(i)], count, out);
    i += count;
  }
  finish(h, num_rows, flags_.take(rows));
  const MatmulOp product{.weight = op.weight, .out = op.logits, .tile_maxima = op.groups.empty() ? op.tile_maxima : Rows{}};
  if (op.groups.empty()) {
    matmuls_.run(h, num_rows, {&product, 1}, false);
  } else {
    matmuls_.run_groups(h, num_rows, product, op.groups);
  }
}

void GpuBackend::scale_and_cap(std::span<float> logits, float scale, float cap) {
  const auto count = std::ssize(logits);
  if (scale != 1.0f) kernels_.scale(logits.data(), scale, count, logits.data());
  if (cap > 0.0f) kernels_.soft_cap(logits.data(), cap, count, logits.data());
}

std::span<const std::uint8_t> GpuBackend::non_finite_rows() const {
  flags_.collect();
  if (!device_->error().empty()) {  // nothing that it gave is a result
    for (std::size_t row = 0; row < rows_.non_finite().size(); ++row) rows_.mark_planned(static_cast<std::int32_t>(row));
  }
  return rows_.non_finite();
}

}  // namespace kvasir::backend
