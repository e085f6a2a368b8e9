// A step's attention: runs the planned tasks, merges split chunks in order, has attention score summed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/attention_plan.h"
#include "backend/cpu/block_scores.h"
#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/step_rows.h"
#include "backend/cpu/weight_prefetcher.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Borrows all that it is given. One caller at a time.
class AttentionExecutor {
 public:
  AttentionExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, WeightPrefetcher& prefetcher,
                    const StepRows& rows);

  // After the rows have the batch of the step.
  void begin_step();
  // After rows were left out: attention is planned anew.
  void forget_plans() { planned_group_size_.assign(planned_group_size_.size(), 0); }

  // Every row's attention as floats. `is_scored`: it counts for step_scores(), once for each layer.
  void attend(const AttendOp& op, bool is_scored, CpuActivation& out);

  // As Backend::step_scores.
  std::span<const kv::StepScores> step_scores(std::int32_t slice, std::int32_t row) const {
    return block_scores_.of_slice(slice, row);
  }

 private:
  // Partial attention results of a unit: a row per (chunk, token, query head).
  struct Partials {
    float* out = nullptr;          // [rows, head_dim]
    float* max = nullptr;          // [rows]
    float* sum = nullptr;          // [rows]
    float* block_sums = nullptr;   // [rows, blocks of a chunk], or null where nobody observes
    float* log_sum_exp = nullptr;  // of the merged rows; likewise
  };

  void plan_group(std::int32_t group, std::int32_t group_size);
  void run_task(const AttendOp& op, std::int64_t index, int worker, CpuActivation& out);
  // `next` is what the worker will most likely attend to afterwards, or null.
  void attend_chunk(const AttendOp& op, const AttentionTask& at, const AttentionTask* next, int worker,
                    const Partials& partials);
  void merge_unit(const AttendOp& op, const AttentionUnit& unit, const Partials& partials,
                  CpuActivation& out);
  static std::int64_t partial_floats(const AttentionPlan& plan, std::int32_t head_dim);
  static Partials partials_of(const AttentionUnit& unit, std::int32_t group_size, std::int32_t head_dim,
                              float* scratch);
  Partials split_partials(const AttendOp& op, const AttentionUnit& unit);

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  WeightPrefetcher& prefetcher_;
  const StepRows& rows_;

  // The current step.
  std::vector<AttentionPlan> plans_;                // per layer group
  std::vector<std::int32_t> planned_group_size_;    // likewise; 0 before the group's first layer
  std::vector<std::vector<float>> worker_scratch_;  // per worker: partials of an unsplit unit
  std::vector<AttentionTask> asked_for_;            // per worker: whose keys its last chunk had for the next
  std::vector<float> split_scratch_;                // partials of the split units
  BlockScores block_scores_;
  bool is_scored_ = false;  // the layer that runs, by somebody who observes
};

}  // namespace kvasir::backend
