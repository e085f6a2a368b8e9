#include "backend/cpu/attention_plan.h"

#include <algorithm>

#include "base/checked_math.h"
#include "kernels/table.h"

namespace kvasir::backend {
namespace {

using kernels::kTokensPerChunk;

constexpr std::int64_t kBlocksPerChunk = kTokensPerChunk / kernels::kTokensPerCell;

// Query tokens of one prefill task: enough to share a converted K/V cell, few enough to balance the workers.
constexpr std::int32_t kTokensPerUnit = 16;

class Planner {
 public:
  Planner(const KvGroupView& group, std::int32_t group_size, AttentionPlan& plan)
      : group_(group), group_size_(group_size), plan_(plan) {}

  void add_slice(std::int32_t sequence, const BatchSequence& slice) {
    const auto first_unit = static_cast<std::int32_t>(plan_.units.size());
    const bool is_observed = slice.observed.num_queries > 0 && group_.window == 0;
    // The last tokens, whose tasks take longest, first: workers end nearly together.
    for (std::int32_t unit = ceil_div(slice.num_rows, kTokensPerUnit); unit-- > 0;) {
      const std::int32_t row = unit * kTokensPerUnit;
      const std::int32_t num_tokens = std::min(kTokensPerUnit, slice.num_rows - row);
      const bool counts = is_observed && (slice.num_draft_rows > 0 ||
                                          slice.num_rows - (row + num_tokens) < slice.observed.num_queries);
      for (std::int32_t head = 0; head < group_.layout.num_kv_heads; ++head) {
        add_unit(sequence, head, slice.first_row + row, num_tokens, slice.first_position + row,
                 slice.first_position + slice.num_rows);
        if (counts) observe(plan_.units.back(), slice.num_draft_rows > 0 ? num_tokens : 1);
      }
    }
    if (is_observed) {
      plan_.observed.push_back({sequence, first_unit, static_cast<std::int32_t>(plan_.units.size())});
    }
  }

 private:
  void add_unit(std::int32_t sequence, std::int32_t head, std::int32_t first_row, std::int32_t num_tokens,
                std::int32_t first_position, std::int32_t sequence_end) {
    AttentionUnit unit;
    unit.sequence = sequence;
    unit.kv_head = head;
    unit.first_row = first_row;
    unit.num_tokens = num_tokens;
    unit.first_position = first_position;
    unit.key_end = std::min(first_position + num_tokens + group_.ahead, sequence_end);
    const std::int32_t key_begin = group_.window > 0 ? std::max(0, first_position - group_.window + 1) : 0;
    unit.chunk_begin = key_begin / kTokensPerChunk;
    unit.chunk_end = ceil_div(unit.key_end, std::int32_t{kTokensPerChunk});
    unit.split = num_tokens == 1;
    const auto index = static_cast<std::int32_t>(plan_.units.size());
    const std::int32_t partial_rows = unit.num_chunks() * num_tokens * group_size_;
    if (unit.split) {
      unit.partial = plan_.num_partial_rows;
      plan_.num_partial_rows += partial_rows;
      plan_.split_units.push_back(index);
      for (std::int32_t chunk = unit.chunk_begin; chunk < unit.chunk_end; ++chunk)
        plan_.tasks.push_back({index, chunk});
    } else {
      plan_.max_unsplit_partial_rows = std::max(plan_.max_unsplit_partial_rows, partial_rows);
      plan_.tasks.push_back({index, unit.chunk_begin});
    }
    plan_.units.push_back(unit);
  }

  // `num_rows`: tokens whose scores are kept apart.
  void observe(AttentionUnit& unit, std::int32_t num_rows) {
    unit.score = plan_.num_unit_scores;
    plan_.num_unit_scores += std::int64_t{num_rows} * group_size_ * unit.num_chunks() * kBlocksPerChunk;
  }

  const KvGroupView& group_;
  const std::int32_t group_size_;
  AttentionPlan& plan_;
};

}  // namespace

void plan_attention(std::span<const BatchSequence> sequences, const KvGroupView& group,
                    std::int32_t group_size, AttentionPlan& plan) {
  plan.units.clear();
  plan.tasks.clear();
  plan.split_units.clear();
  plan.num_partial_rows = 0;
  plan.max_unsplit_partial_rows = 0;
  plan.observed.clear();
  plan.num_unit_scores = 0;
  Planner planner(group, group_size, plan);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].num_rows > 0) planner.add_slice(static_cast<std::int32_t>(i), sequences[i]);
  }
}

}  // namespace kvasir::backend
