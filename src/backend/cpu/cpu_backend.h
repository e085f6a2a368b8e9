// The op contract on CPU cores: cuts every op into tasks for the worker team and calls the kernel table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/attention_plan.h"
#include "backend/cpu/block_mass.h"
#include "backend/cpu/bounded_argmax.h"
#include "backend/cpu/rope_angles.h"
#include "backend/cpu/weight_prefetcher.h"
#include "base/aligned_buffer.h"
#include "base/checked_math.h"
#include "base/thread_pool.h"

namespace kvasir::backend {

// Borrows the table and the pool; both must outlive it. One caller at a time (the engine thread).
class CpuBackend final : public Backend {
 public:
  CpuBackend(const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision);
  ~CpuBackend() override;

  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use) override;
  void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) override;
  Result<std::unique_ptr<Activation>> make_activation(std::int32_t max_rows, std::int32_t width) override;
  Result<Rows> make_rows(std::int32_t max_rows, std::int32_t width) override;
  void plan(const BatchInput& batch, std::span<const RopeTable> ropes) override;
  void convert_cells(std::span<const kv::CellConversion> conversions, std::int32_t head_dim,
                     std::byte* memory) override;
  void convert_cell(const kv::KvCell& from, kv::KvFormat to, std::int32_t head_dim,
                    std::byte* target) override;
  void measure_blocks(const MeasureBlocksOp& op) override;
  void embed(const TensorView& table, float scale, Rows x) override;
  void norm(Rows x, std::span<const float> weight, float eps, Activation& out) override;
  void norm_rows(Rows x, std::span<const float> weight, float eps, std::int32_t first_row,
                 std::int32_t num_rows, Rows out) override;
  void norm_add(Rows y, std::span<const float> weight, float eps, Rows x) override;
  void matmul(const Activation& in, std::span<const MatmulOp> ops) override;
  void matmul_add(const Activation& in, const Matrix& weight, Rows x) override;
  void rope_and_store(const RopeAndStoreOp& op) override;
  void attend(const AttendOp& op, Activation& out) override;
  std::int32_t attend_wanted_rows(const AttendOp& op, Rows x, Activation& out) override;
  void gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) override;
  void head(const HeadOp& op, std::int32_t first_row, std::int32_t num_rows, Activation& scratch) override;
  std::span<const std::uint8_t> non_finite_rows() const override { return non_finite_; }
  std::span<const kv::StepMass> step_mass(std::int32_t slice, std::int32_t row) const override {
    return block_mass_.of_slice(slice, row);
  }
  std::int64_t skipped_weight_bytes() const override { return argmax_.skipped_bytes(); }
  const kernels::KernelTable& kernels() const override { return kernels_; }

 private:
  // Partial attention results of a unit: a row per (chunk, token, query head).
  struct Partials {
    float* out = nullptr;          // [rows, head_dim]
    float* max = nullptr;          // [rows]
    float* sum = nullptr;          // [rows]
    float* block_sums = nullptr;   // [rows, blocks of a chunk], or null where nobody observes
    float* log_sum_exp = nullptr;  // of the merged rows; likewise
  };

  // Below this many floats an op is done by the caller alone: handing it over would cost more.
  static constexpr std::int64_t kInlineFloats = 8192;

  // Calls fn(row, worker) for each row: alone when the whole op is small, in runs of rows otherwise.
  template <class F>
  void for_rows(std::int32_t num_rows, std::int64_t floats_per_row, const F& fn) {
    if (num_rows * floats_per_row <= kInlineFloats || pool_.num_threads() == 1) {
      for (std::int32_t row = 0; row < num_rows; ++row) fn(row, 0);
      return;
    }
    const std::int32_t rows_per_task = rows_of_task(num_rows, floats_per_row);
    pool_.parallel_for(ceil_div(num_rows, rows_per_task), [&](std::int64_t task, int worker) {
      const auto begin = static_cast<std::int32_t>(task) * rows_per_task;
      const std::int32_t end = std::min(num_rows, begin + rows_per_task);
      for (std::int32_t row = begin; row < end; ++row) fn(row, worker);
    });
  }
  // Whole tiles of quantised rows, or quarters of one, whose cache lines nobody else writes.
  std::int32_t rows_of_task(std::int32_t num_rows, std::int64_t floats_per_row) const;
  void plan_rope(std::span<const RopeTable> ropes);
  void compute_rope(std::size_t rope);
  void run_matmul(const CpuActivation& in, std::int32_t num_rows, std::span<const MatmulOp> ops,
                  bool accumulate);
  // Row groups and tokens of one task.
  struct MatmulCut {
    std::int64_t groups_per_task;
    std::int64_t tokens_per_task;
  };
  MatmulCut cut_matmul(const CpuActivation& in, std::int32_t num_rows, std::int64_t num_groups,
                       std::int64_t num_bytes, std::int64_t tile_groups) const;
  kernels::MatmulArgs part_of(const CpuMatrix& matrix, const CpuActivation& in, const MatmulCut& cut,
                              std::int64_t group, std::int64_t token, std::int32_t num_rows) const;
  void multiply(const CpuMatrix& matrix, const kernels::MatmulArgs& args) const;
  void finish_matmul(const MatmulOp& op, const kernels::MatmulArgs& args, std::int64_t first_row);
  // Where a worker writes row `row` of `out` before it is quantised.
  float* float_row(const CpuActivation& out, std::int32_t row, int worker);
  // Row `row` of the num_rows of `out`, from `floats`; a bad value in it is blamed on batch_row.
  void quantize(CpuActivation& out, const float* floats, std::int32_t row, std::int32_t num_rows,
                std::int32_t batch_row);
  void mark_non_finite(std::int32_t batch_row);
  // `next` is what the worker will most likely attend to afterwards, or null.
  void attend_chunk(const AttendOp& op, const AttentionTask& at, const AttentionTask* next, int worker,
                    const Partials& partials);
  void merge_unit(const AttendOp& op, const AttentionUnit& unit, const Partials& partials,
                  CpuActivation& out);
  void run_attention_task(const AttendOp& op, std::int64_t index, int worker, CpuActivation& out);
  static std::int64_t partial_floats(const AttentionPlan& plan, std::int32_t head_dim);
  static Partials partials_of(const AttentionUnit& unit, std::int32_t group_size, std::int32_t head_dim,
                              float* scratch);
  std::int32_t keep_wanted_rows(std::span<const Rows> rows);
  Partials split_partials(const AttendOp& op, const AttentionUnit& unit);

  const kernels::FormatKernels& format_of(DType dtype) const {
    const auto& formats = precision_ == Precision::kFast ? kernels_.w8a8_formats : kernels_.formats;
    return formats[static_cast<std::size_t>(dtype)];
  }

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  const Precision precision_;
  std::vector<AlignedBuffer> row_buffers_;
  std::set<std::int64_t> float_widths_;          // row lengths of the matrices that take float activations
  std::vector<std::vector<float>> worker_rows_;  // per worker: a row of the widest activation

  // The current step.
  BatchInput batch_;
  std::vector<std::int32_t> sequence_of_row_;
  std::vector<std::int32_t> position_of_row_;
  std::vector<std::uint8_t> non_finite_;      // by planned row
  std::vector<std::int32_t> planned_row_;     // of each row that is left
  std::vector<SequenceSlice> wanted_slices_;  // batch_.sequences after attend_wanted_rows
  RopeAngles rope_angles_;
  std::vector<kernels::RopeStyle> rope_styles_;
  std::vector<std::int64_t> rope_offsets_;      // of each table in rope_values_
  std::vector<std::uint8_t> rope_is_computed_;  // by table, in this step
  std::vector<float> rope_values_;              // per table and row: cos then sin, [rotary_dim / 2] each
  std::vector<AttentionPlan> attention_;        // per layer group
  std::vector<std::int32_t> planned_group_size_;
  std::vector<std::vector<float>> worker_scratch_;  // per worker: partials of an unsplit unit
  std::vector<AttentionTask> asked_for_;            // per worker: whose keys its last chunk had for the next
  std::vector<float> split_scratch_;                // partials of the split units
  BlockMass block_mass_;
  WeightPrefetcher prefetcher_;
  BoundedArgmax argmax_;
};

}  // namespace kvasir::backend
