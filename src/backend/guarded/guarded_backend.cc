#include "backend/guarded/guarded_backend.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::backend {
namespace {

class Opened {
 public:
  explicit Opened(GuardedMemory& memory) : memory_(memory) { memory_.open(); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { memory_.close(); }

 private:
  GuardedMemory& memory_;
};

}  // namespace

template <class Op>
decltype(auto) GuardedBackend::with_memory(const Op& op) {
  const Opened opened(*memory_);
  return op(cpu_);
}

Result<std::unique_ptr<Matrix>> GuardedBackend::make_matrix(const TensorView& tensor, MatrixUse use) {
  return with_memory([&](CpuBackend& cpu) -> Result<std::unique_ptr<Matrix>> { return cpu.make_matrix(tensor, use); });
}

void GuardedBackend::pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) {
  with_memory([&](CpuBackend& cpu) { cpu.pack_rows(rows, first_row, matrix); });
}

Result<std::unique_ptr<Matrix>> GuardedBackend::adopt_matrix(const TensorView& tensor, MatrixUse use,
                                                             std::span<const std::byte> packed) {
  KVASIR_TRY(AlignedBuffer copy, memory_->allocate(std::ssize(packed)));
  const Opened opened(*memory_);
  std::ranges::copy(packed, copy.data());
  return cpu_.adopt_matrix(tensor, use, copy.bytes());
}

Result<PackedSize> GuardedBackend::packed_size(const TensorView& tensor, MatrixUse use) const {
  return cpu_.packed_size(tensor, use);
}

Result<std::unique_ptr<Activation>> GuardedBackend::make_activation(std::int32_t max_rows, std::int32_t width) {
  return with_memory([&](CpuBackend& cpu) -> Result<std::unique_ptr<Activation>> { return cpu.make_activation(max_rows, width); });
}

Result<Rows> GuardedBackend::make_rows(std::int32_t max_rows, std::int32_t width) {
  return with_memory([&](CpuBackend& cpu) -> Result<Rows> { return cpu.make_rows(max_rows, width); });
}

Result<std::unique_ptr<ExpertRows>> GuardedBackend::make_expert_rows(const ExpertShape& shape) {
  return with_memory([&](CpuBackend& cpu) -> Result<std::unique_ptr<ExpertRows>> { return cpu.make_expert_rows(shape); });
}

Result<std::unique_ptr<Adapter>> GuardedBackend::make_adapter(std::span<const AdapterPart> parts) {
  return with_memory([&](CpuBackend& cpu) -> Result<std::unique_ptr<Adapter>> { return cpu.make_adapter(parts); });
}

Result<AlignedBuffer> GuardedBackend::make_cell_memory(std::int64_t num_bytes) { return memory_->allocate(num_bytes); }

std::span<const std::byte> GuardedBackend::host_bytes(const Matrix& matrix) {
  const Opened opened(*memory_);
  const std::span<const std::byte> bytes = cpu_.host_bytes(matrix);
  host_bytes_.assign(bytes.begin(), bytes.end());
  return host_bytes_;
}

std::span<float> GuardedBackend::host_row(const Rows& rows, std::int64_t row) {
  const Opened opened(*memory_);
  const std::span<const float> floats = cpu_.host_row(rows, row);
  std::vector<float>& copy = host_rows_[floats.data()];
  copy.assign(floats.begin(), floats.end());
  return copy;
}

void GuardedBackend::write_row(std::span<const float> floats, const Rows& rows, std::int64_t row) {
  with_memory([&](CpuBackend& cpu) { cpu.write_row(floats, rows, row); });
}

void GuardedBackend::plan(const BatchInput& batch, std::span<const RopeTable> ropes) {
  host_rows_.clear();
  with_memory([&](CpuBackend& cpu) { cpu.plan(batch, ropes); });
}

void GuardedBackend::convert_cells(std::span<const kv::CellConversion> conversions, std::byte* memory) {
  with_memory([&](CpuBackend& cpu) { cpu.convert_cells(conversions, memory); });
}

void GuardedBackend::read_cell(const std::byte* cell, std::span<std::byte> bytes) {
  with_memory([&](CpuBackend& cpu) { cpu.read_cell(cell, bytes); });
}

void GuardedBackend::measure_blocks(const MeasureBlocksOp& op) {
  with_memory([&](CpuBackend& cpu) { cpu.measure_blocks(op); });
}

void GuardedBackend::embed(const EmbedOp& op, Rows x) {
  with_memory([&](CpuBackend& cpu) { cpu.embed(op, x); });
}

void GuardedBackend::norm_in_place(Rows x, const Norm& norm) {
  with_memory([&](CpuBackend& cpu) { cpu.norm_in_place(x, norm); });
}

void GuardedBackend::embed_parts(const EmbedPartsOp& op) {
  with_memory([&](CpuBackend& cpu) { cpu.embed_parts(op); });
}

void GuardedBackend::norm(Rows x, const Norm& norm, Activation& out) {
  with_memory([&](CpuBackend& cpu) { cpu.norm(x, norm, out); });
}

void GuardedBackend::norm_rows(Rows x, const Norm& norm, std::int32_t first_row, std::int32_t num_rows,
                               Rows out) {
  with_memory([&](CpuBackend& cpu) { cpu.norm_rows(x, norm, first_row, num_rows, out); });
}

void GuardedBackend::norm_add(const NormAddOp& op) {
  with_memory([&](CpuBackend& cpu) { cpu.norm_add(op); });
}

void GuardedBackend::matmul(const Activation& in, std::span<const MatmulOp> ops) {
  with_memory([&](CpuBackend& cpu) { cpu.matmul(in, ops); });
}

void GuardedBackend::matmul_add(const Activation& in, const MatmulOp& op) {
  with_memory([&](CpuBackend& cpu) { cpu.matmul_add(in, op); });
}

void GuardedBackend::add(Rows y, float factor, Rows x) {
  with_memory([&](CpuBackend& cpu) { cpu.add(y, factor, x); });
}

void GuardedBackend::rope_and_store(const RopeAndStoreOp& op) {
  with_memory([&](CpuBackend& cpu) { cpu.rope_and_store(op); });
}

void GuardedBackend::attend(const AttendOp& op, Activation& out) {
  with_memory([&](CpuBackend& cpu) { cpu.attend(op, out); });
}

std::int32_t GuardedBackend::attend_wanted_rows(const AttendOp& op, std::span<const Rows> rows, bool is_last,
                                                Activation& out) {
  return with_memory([&](CpuBackend& cpu) -> std::int32_t { return cpu.attend_wanted_rows(op, rows, is_last, out); });
}

void GuardedBackend::gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) {
  with_memory([&](CpuBackend& cpu) { cpu.gate(kind, gate_rows, up_rows, out); });
}

void GuardedBackend::route(const RouteOp& op, ExpertRows& rows) {
  with_memory([&](CpuBackend& cpu) { cpu.route(op, rows); });
}

void GuardedBackend::add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) {
  with_memory([&](CpuBackend& cpu) { cpu.add_experts(op, in, rows, out); });
}

void GuardedBackend::add_gated(Rows gate_rows, Rows y, float scale, Rows out) {
  with_memory([&](CpuBackend& cpu) { cpu.add_gated(gate_rows, y, scale, out); });
}

void GuardedBackend::head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) {
  with_memory([&](CpuBackend& cpu) { cpu.head(op, rows, scratch); });
}

// The host's memory.
void GuardedBackend::scale_and_cap(std::span<float> logits, float scale, float cap) {
  cpu_.scale_and_cap(logits, scale, cap);
}

}  // namespace kvasir::backend
