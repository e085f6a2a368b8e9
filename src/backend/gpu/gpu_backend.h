// The op contract on a GPU: the host plans, kernels compute what the CPU's kernels compute, bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/step_rows.h"
#include "backend/gpu/device_array.h"
#include "backend/gpu/device_copies.h"
#include "backend/gpu/gpu_attention.h"
#include "backend/gpu/gpu_cells.h"
#include "backend/gpu/gpu_device.h"
#include "backend/gpu/gpu_experts.h"
#include "backend/gpu/gpu_matmul.h"
#include "backend/gpu/gpu_rope.h"
#include "backend/gpu/gpu_tensors.h"
#include "backend/gpu/row_flags.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Owns the device; borrows the table, which packs weights and does what is left to the host, and the pool. One caller at
// a time (the engine thread). Cells are of F16 or F32. Ops return before their results are complete, and those that bring
// results home wait.
class GpuBackend final : public Backend {
 public:
  GpuBackend(std::unique_ptr<GpuDevice> device, const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision);
  ~GpuBackend() override;

  std::optional<std::int64_t> memory_bytes() const override { return device_->limit_bytes(); }
  std::int64_t scratch_bytes() const override;
  std::string error() const override { return device_->error(); }
  void keep_layers(std::int32_t num_layers) override { matmuls_.keep_layers(num_layers); }
  std::int64_t host_weight_bytes() const override { return matmuls_.host_weight_bytes(); }
  Status check_cells(kv::KvFormat format) const override;
  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use) override {
    return matmuls_.make_matrix(tensor, use);
  }
  void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) override {
    matmuls_.pack_rows(rows, first_row, matrix);
  }
  Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use,
                                               std::span<const std::byte> packed) override {
    return matmuls_.adopt_matrix(tensor, use, packed);
  }
  Result<PackedSize> packed_size(const TensorView& tensor, MatrixUse) const override {
    return matmuls_.packed_size(tensor);
  }
  Result<std::unique_ptr<Activation>> make_activation(std::int32_t max_rows, std::int32_t width) override;
  Result<Rows> make_rows(std::int32_t max_rows, std::int32_t width) override;
  Result<std::unique_ptr<ExpertRows>> make_expert_rows(const ExpertShape& shape) override;
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
  void rope_and_store(const RopeAndStoreOp& op) override { rope_.rope_and_store(op); }
  void attend(const AttendOp& op, Activation& out) override;
  std::int32_t attend_wanted_rows(const AttendOp& op, std::span<const Rows> rows, bool is_last, Activation& out) override;
  void gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) override;
  void route(const RouteOp& op, ExpertRows& rows) override;
  void add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) override;
  void add_gated(Rows gate_rows, Rows y, float scale, Rows out) override { experts_.add_gated(gate_rows, y, scale, out); }
  void head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) override;
  void scale_and_cap(std::span<float> logits, float scale, float cap) override;
  std::span<const std::uint8_t> non_finite_rows() const override;
  std::span<const kv::StepScores> step_scores(std::int32_t slice, std::int32_t row) const override {
    return attention_.step_scores(slice, row);
  }
  std::int64_t skipped_weight_bytes() const override { return 0; }

 private:
  // Norms rows [first, first + count) of x into those of `out` from 0 on.
  void norm_run(Rows x, const Norm& norm, std::int32_t first, std::int32_t count, Rows out);
  // Quantises the first num_rows rows of `out`, or looks at them alone. `flags`: where their being usual is said.
  void finish(GpuActivation& out, std::int32_t num_rows, std::uint8_t* flags);
  void run_attention(const AttendOp& op, bool is_scored, Activation& out);
  // To the numbers that the kept rows have now.
  void move_kept(const Rows& rows);

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  std::unique_ptr<GpuDevice> device_;
  std::int64_t widest_rows_bytes_ = 0;  // of those that were made
  std::int64_t expert_bytes_ = 0;       // what the experts' rows may take
  std::vector<float*> row_buffers_;
  std::vector<std::byte*> cell_memories_;
  DeviceCopies copies_;
  mutable StepRows rows_;
  mutable RowFlags flags_;
  GpuMatmul matmuls_;
  GpuExperts experts_;
  GpuCells cells_;
  GpuRope rope_;
  GpuAttention attention_;
  DeviceArray<float> looked_up_;       // rows of a table
  DeviceArray<float> moved_;           // rows on their way
  DeviceArray<std::int32_t> indices_;  // of rows
  std::vector<float> home_rows_;       // rows of a table, before they are the device's
  std::vector<std::vector<float>> host_rows_;  // of host_row(), since plan()
  std::vector<std::byte> host_bytes_;
};

}  // namespace kvasir::backend
