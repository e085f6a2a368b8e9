#include "backend/cpu/block_mass.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/table.h"

namespace kvasir::backend {
namespace {

constexpr std::int64_t kBlocksPerChunk = kernels::kTokensPerChunk / kernels::kTokensPerCell;

}  // namespace

void BlockMass::begin_step(const BatchInput& batch) {
  // Never smaller: batches of different sizes may take turns.
  masses_.resize(std::max(masses_.size(), batch.sequences.size()));
  num_kv_heads_.clear();
  for (const KvGroupView& group : batch.kv_groups) num_kv_heads_.push_back(group.layout.num_kv_heads);
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    masses_[i].resize(batch.kv_groups.size());
    for (std::size_t g = 0; g < batch.kv_groups.size(); ++g) {
      const KvGroupView& group = batch.kv_groups[g];
      kv::StepMass& mass = masses_[i][g];
      const bool is_wanted = batch.sequences[i].observed.num_queries > 0 && group.window == 0;
      mass.num_blocks = is_wanted ? static_cast<std::int32_t>(group.blocks[i].size()) : 0;
      const auto num_cells = static_cast<std::size_t>(is_wanted ? group.layout.cells_per_block() : 0);
      mass.sum.assign(num_cells * static_cast<std::size_t>(mass.num_blocks), 0.0f);
      mass.greatest.assign(mass.sum.size(), 0.0f);
      mass.num_queries.assign(num_cells, 0);
    }
  }
}

void BlockMass::begin_layer(const AttentionPlan& plan, std::span<const SequenceSlice> slices,
                            std::int32_t group_size) {
  plan_ = &plan;
  slices_ = slices;
  group_size_ = group_size;
  of_units_.resize(std::max(of_units_.size(), static_cast<std::size_t>(plan.num_unit_masses)));
}

void BlockMass::fold(const AttentionUnit& unit, const UnitRows& rows) {
  const SequenceSlice& slice = slices_[static_cast<std::size_t>(unit.sequence)];
  const std::int64_t num_rows = std::int64_t{unit.num_tokens} * group_size_;
  const std::int64_t num_blocks = unit.num_chunks() * kBlocksPerChunk;
  float* masses = of_units_.data() + unit.mass;
  std::fill_n(masses, group_size_ * num_blocks, 0.0f);
  const std::int32_t last = slice.first_row + slice.num_rows - 1;
  for (std::int32_t token = 0; token < unit.num_tokens; ++token) {
    const std::int32_t age = last - (unit.first_row + token);
    if (age >= slice.observed.num_queries) continue;
    const float weight = std::pow(slice.observed.decay, static_cast<float>(age));
    for (std::int32_t head = 0; head < group_size_; ++head) {
      const std::int64_t row = std::int64_t{token} * group_size_ + head;
      float* of_head = masses + head * num_blocks;
      for (std::int64_t chunk = 0; chunk < unit.num_chunks(); ++chunk, of_head += kBlocksPerChunk) {
        const std::int64_t at = chunk * num_rows + row;
        if (rows.max[at] == -std::numeric_limits<float>::infinity()) continue;
        const float factor = weight * std::exp(rows.max[at] - rows.log_sum_exp[row]);
        const float* block_sums = rows.block_sums + at * kBlocksPerChunk;
        for (std::int64_t b = 0; b < kBlocksPerChunk; ++b) {
          // What a ghost would get has no limit of its own.
          of_head[b] += std::min(weight, factor * block_sums[b]);
        }
      }
    }
  }
}

void BlockMass::end_layer(std::int32_t group, std::int32_t layer_in_group) {
  const std::int32_t num_heads = num_kv_heads_[static_cast<std::size_t>(group)];
  for (const ObservedSlice& observed : plan_->observed) {
    const SequenceSlice& slice = slices_[static_cast<std::size_t>(observed.sequence)];
    kv::StepMass& mass =
        masses_[static_cast<std::size_t>(observed.sequence)][static_cast<std::size_t>(group)];
    for (std::int32_t head = 0; head < num_heads; ++head) {
      const std::int32_t cell = layer_in_group * num_heads + head;
      std::int32_t& num_queries = mass.num_queries[static_cast<std::size_t>(cell)];
      if (num_queries > 0) continue;  // attention that ran before for more rows
      num_queries = std::min(slice.observed.num_queries, slice.num_rows);
      add_up(observed, head, cell, mass);
    }
  }
}

// Over the units of a slice and a KV head, query head by query head.
void BlockMass::add_up(const ObservedSlice& observed, std::int32_t kv_head, std::int32_t cell,
                       kv::StepMass& mass) {
  const auto width = static_cast<std::size_t>(mass.num_blocks);
  float* sum = mass.sum.data() + static_cast<std::size_t>(cell) * width;
  float* greatest = mass.greatest.data() + static_cast<std::size_t>(cell) * width;
  for (std::int32_t query_head = 0; query_head < group_size_; ++query_head) {
    of_head_.assign(width, 0.0f);
    for (std::int32_t i = observed.first_unit; i < observed.end_unit; ++i) {
      const AttentionUnit& unit = plan_->units[static_cast<std::size_t>(i)];
      if (unit.kv_head != kv_head || unit.mass < 0) continue;
      const std::int64_t num_blocks = unit.num_chunks() * kBlocksPerChunk;
      const float* of_unit = of_units_.data() + unit.mass + query_head * num_blocks;
      const auto first = static_cast<std::size_t>(unit.chunk_begin * kBlocksPerChunk);
      const std::size_t end = std::min(width, first + static_cast<std::size_t>(num_blocks));
      for (std::size_t b = first; b < end; ++b) of_head_[b] += of_unit[b - first];
    }
    for (std::size_t b = 0; b < width; ++b) {
      sum[b] += of_head_[b];
      greatest[b] = std::max(greatest[b], of_head_[b]);
    }
  }
}

}  // namespace kvasir::backend
