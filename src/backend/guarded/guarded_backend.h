// The CPU backend with a device's manners: its memory cannot be touched outside of its ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/guarded/guarded_memory.h"

namespace kvasir::backend {

// A test double of every device: the engine that runs on it needs no memory of a device. Same bits as the CPU
// backend, and much slower, because each op opens the memory and closes it again. Borrows table and pool.
//
// Thread safety: as Backend.
class GuardedBackend final : public Backend {
 public:
  GuardedBackend(const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision,
                 std::unique_ptr<GuardedMemory> memory)
      : memory_(std::move(memory)), cpu_(kernels, pool, precision, *memory_) {}

  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use) override;
  void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) override;
  // Copies the bytes, as a device has to.
  Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use,
                                               std::span<const std::byte> packed) override;
  Result<PackedSize> packed_size(const TensorView& tensor, MatrixUse use) const override;
  Result<std::unique_ptr<Activation>> make_activation(std::int32_t max_rows, std::int32_t width) override;
  Result<Rows> make_rows(std::int32_t max_rows, std::int32_t width) override;
  Result<std::unique_ptr<ExpertRows>> make_expert_rows(const ExpertShape& shape) override;
  void expect_adapters(AdapterType type) override { cpu_.expect_adapters(type); }
  Result<std::unique_ptr<Adapter>> make_adapter(std::span<const AdapterPart> parts) override;
  std::int64_t adapter_bytes(std::span<const AdapterPart> parts) const override { return cpu_.adapter_bytes(parts); }
  Result<AlignedBuffer> make_cell_memory(std::int64_t num_bytes) override;
  std::span<const std::byte> host_bytes(const Matrix& matrix) override;
  std::span<float> host_row(const Rows& rows, std::int64_t row) override;
  void write_row(std::span<const float> floats, const Rows& rows, std::int64_t row) override;
  void plan(const BatchInput& batch, std::span<const RopeTable> ropes) override;
  void convert_cells(std::span<const kv::CellConversion> conversions, std::byte* memory) override;
  void read_cell(const std::byte* cell, std::span<std::byte> bytes) override;
  void measure_blocks(const MeasureBlocksOp& op) override;
  void embed(const EmbedOp& op, Rows x) override;
  void norm_in_place(Rows x, const Norm& norm) override;
  void embed_parts(const EmbedPartsOp& op) override;
  void norm(Rows x, const Norm& norm, Activation& out) override;
  void norm_rows(Rows x, const Norm& norm, std::int32_t first_row, std::int32_t num_rows, Rows out) override;
  void norm_add(const NormAddOp& op) override;
  void matmul(const Activation& in, std::span<const MatmulOp> ops) override;
  void matmul_add(const Activation& in, const MatmulOp& op) override;
  void add(Rows y, float factor, Rows x) override;
  void rope_and_store(const RopeAndStoreOp& op) override;
  void attend(const AttendOp& op, Activation& out) override;
  std::int32_t attend_wanted_rows(const AttendOp& op, std::span<const Rows> rows, bool is_last,
                                  Activation& out) override;
  void gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) override;
  void route(const RouteOp& op, ExpertRows& rows) override;
  void add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) override;
  void add_gated(Rows gate_rows, Rows y, float scale, Rows out) override;
  void head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) override;
  void scale_and_cap(std::span<float> logits, float scale, float cap) override;
  std::span<const std::uint8_t> non_finite_rows() const override { return cpu_.non_finite_rows(); }
  std::span<const kv::StepScores> step_scores(std::int32_t slice, std::int32_t row) const override {
    return cpu_.step_scores(slice, row);
  }
  std::int64_t skipped_weight_bytes() const override { return cpu_.skipped_weight_bytes(); }

 private:
  // Calls op(backend) with the memory open.
  template <class Op>
  decltype(auto) with_memory(const Op& op);

  const std::unique_ptr<GuardedMemory> memory_;
  CpuBackend cpu_;
  std::map<const float*, std::vector<float>> host_rows_;  // what host_row() gave, by its place in the memory
  std::vector<std::byte> host_bytes_;                     // what host_bytes() gave last
};

}  // namespace kvasir::backend
