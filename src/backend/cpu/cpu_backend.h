// The op contract on CPU cores. Executors cut ops into tasks for the worker team and call the kernel table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/activation_quantizer.h"
#include "backend/cpu/adapter_executor.h"
#include "backend/cpu/attention_executor.h"
#include "backend/cpu/bounded_argmax.h"
#include "backend/cpu/cell_executor.h"
#include "backend/cpu/expert_executor.h"
#include "backend/cpu/matmul_executor.h"
#include "backend/cpu/rope_executor.h"
#include "backend/cpu/step_rows.h"
#include "backend/cpu/weight_prefetcher.h"
#include "backend/memory_source.h"
#include "base/aligned_buffer.h"
#include "base/thread_pool.h"

namespace kvasir::backend {

// Borrows the table, the pool and the source of its memory; all must outlive it. One caller at a time (the engine
// thread). An op is complete when it returns.
class CpuBackend : public Backend {
 public:
  CpuBackend(const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision,
             MemorySource& memory = host_memory());
  ~CpuBackend() override;

  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use) override;
  void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) override;
  Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use,
                                               std::span<const std::byte> packed) override;
  Result<PackedSize> packed_size(const TensorView& tensor, MatrixUse use) const override;
  Result<std::unique_ptr<Activation>> make_activation(std::int32_t max_rows, std::int32_t width) override;
  Result<Rows> make_rows(std::int32_t max_rows, std::int32_t width) override;
  Result<std::unique_ptr<ExpertRows>> make_expert_rows(const ExpertShape& shape) override;
  void expect_adapters(AdapterType type) override {
    expects_adapters_ = true;
    adapters_.set_type(type);
  }
  Result<std::unique_ptr<Adapter>> make_adapter(std::span<const AdapterPart> parts) override;
  std::int64_t adapter_bytes(std::span<const AdapterPart> parts) const override { return adapters_.adapter_bytes(parts); }
  Result<AlignedBuffer> make_cell_memory(std::int64_t num_bytes) override { return memory_.allocate(num_bytes); }
  std::span<const std::byte> host_bytes(const Matrix& matrix) override { return cpu(matrix).bytes(); }
  std::span<float> host_row(const Rows& rows, std::int64_t row) override {
    return {rows.row(row), static_cast<std::size_t>(rows.width)};
  }
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
  std::span<const std::uint8_t> non_finite_rows() const override { return rows_.non_finite(); }
  std::span<const kv::StepScores> step_scores(std::int32_t slice, std::int32_t row) const override {
    return attention_.step_scores(slice, row);
  }
  std::int64_t skipped_weight_bytes() const override {
    return argmax_.skipped_bytes() + experts_.skipped_bytes();
  }

 protected:
  // Rows of the batch that are left.
  std::int32_t num_rows() const { return rows_.count(); }
  void keep_inputs_of_expert_down() { experts_.keep_inputs_of_down(); }

 private:
  // The attention of op's rows. `is_scored`: those that are observed are so.
  void run_attention(const AttendOp& op, bool is_scored, Activation& out);
  // Normalises row_of(i) of x into row i of `out`, and quantises it.
  template <class RowOf>
  void norm_into(Rows x, const Norm& norm, std::int32_t num_rows, const RowOf& row_of, CpuActivation& out);
  void move_kept(const Rows& rows) const;
  void norm_row(const Norm& norm, const float* x, std::int32_t width, float* out) const;

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  MemorySource& memory_;
  std::vector<AlignedBuffer> row_buffers_;
  StepRows rows_;
  WeightPrefetcher prefetcher_;
  ActivationQuantizer quantizer_;
  MatmulExecutor matmuls_;
  AdapterExecutor adapters_;
  bool expects_adapters_ = false;
  ExpertExecutor experts_;
  RopeExecutor rope_;
  AttentionExecutor attention_;
  CellExecutor cells_;
  BoundedArgmax argmax_;
  std::vector<std::vector<float>> looked_up_;  // by worker: a row of embed_parts()
};

}  // namespace kvasir::backend
