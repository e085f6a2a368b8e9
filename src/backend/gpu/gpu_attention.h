// A step's attention on a GPU: a launch for the chunks of keys, one that merges them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/attention_plan.h"
#include "backend/cpu/block_scores.h"
#include "backend/cpu/step_rows.h"
#include "backend/gpu/device_array.h"
#include "backend/gpu/device_copies.h"
#include "backend/gpu/gpu_cells.h"
#include "backend/gpu/gpu_tensors.h"

namespace kvasir::backend {

// Units and chunks are those of the CPU, so the bits are. Borrows all that it is given. Thread safety: none.
class GpuAttention {
 public:
  GpuAttention(GpuDevice& device, DeviceCopies& copies, const StepRows& rows, GpuCells& cells);

  // Partial results may take so much: a small part of the device's memory.
  std::int64_t scratch_bytes() const { return scratch_bytes_; }

  // After the rows have the batch of the step.
  void begin_step();
  // After rows were left out: attention is planned anew.
  void forget_plans();

  // Every row's attention as floats. `is_scored`: it counts for step_scores(), once for each layer.
  void attend(const AttendOp& op, bool is_scored, GpuActivation& out);

  // As Backend::step_scores.
  std::span<const kv::StepScores> step_scores(std::int32_t slice, std::int32_t row) const {
    return block_scores_.of_slice(slice, row);
  }

 private:
  // Units whose partial results are there at the same time, and the rows that they are all of.
  struct Piece {
    std::int32_t first_unit = 0, end_unit = 0;
    std::int32_t first_task = 0, end_task = 0;
    std::int32_t first_row = 0, end_row = 0;
    std::int64_t num_partials = 0;
  };

  // A layer group's tasks, and where each row's partial results lie in its piece.
  struct GroupPlan {
    explicit GroupPlan(GpuDevice& device)
        : device_tasks(device), device_blocks(device), device_first(device), device_stride(device), device_chunks(device) {}

    std::int32_t group_size = 0;  // 0: nothing is planned
    AttentionPlan plan;
    std::vector<std::int32_t> first_partial;  // by unit
    std::vector<Piece> pieces;
    std::vector<cuda::AttentionTask> tasks;
    std::vector<std::int32_t> blocks, first_block;         // GpuCells::Blocks
    std::vector<std::int32_t> first, stride, num_chunks;  // of each row's heads
    DeviceArray<cuda::AttentionTask> device_tasks;
    DeviceArray<std::int32_t> device_blocks, device_first, device_stride, device_chunks;
  };

  void plan_group(std::int32_t group, std::int32_t group_size, GroupPlan& plan);
  // The piece that the units of a row's heads, from this one on, go to: the last one, or a new one.
  Piece& piece_for(const AttentionUnit& unit, std::int32_t num_kv_heads, std::int32_t head_dim, GroupPlan& plan) const;
  static void add_unit(const AttentionUnit& unit, std::int32_t num_heads, Piece& piece, GroupPlan& plan);
  void run_chunks(const AttendOp& op, const KvGroupView& group, const Piece& piece, bool is_observed, GroupPlan& plan);
  void merge(const AttendOp& op, const KvGroupView& group, const Piece& piece, GroupPlan& plan, GpuActivation& out);
  void fold_scores(const Piece& piece, const GroupPlan& plan);

  GpuDevice& device_;
  DeviceCopies& copies_;
  const StepRows& rows_;
  GpuCells& cells_;
  const std::int64_t scratch_bytes_;
  std::vector<std::unique_ptr<GroupPlan>> plans_;
  BlockScores block_scores_;

  // The layer that runs: partial results and, where they are scored, what came home.
  DeviceArray<float> out_, max_, sum_, block_sums_, row_max_, total_sum_;
  std::vector<float> home_max_, home_sum_, home_block_sums_, home_row_max_, home_total_, log_sum_exp_;
};

}  // namespace kvasir::backend
