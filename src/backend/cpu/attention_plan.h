// How one step's attention is cut into tasks: planned once from the batch's shape, run for every layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/batch_input.h"

namespace kvasir::backend {

// A few consecutive query tokens of one sequence under one KV head, with the key chunks they may see.
struct AttentionUnit {
  std::int32_t sequence = 0;  // slice index
  std::int32_t kv_head = 0;
  std::int32_t first_row = 0;  // of the batch
  std::int32_t num_tokens = 0;
  std::int32_t first_position = 0;
  std::int32_t chunk_begin = 0;  // key chunks [chunk_begin, chunk_end) of kTokensPerChunk
  std::int32_t chunk_end = 0;
  std::int32_t key_end = 0;  // last position + 1
  bool split = false;        // each chunk is a task of its own
  std::int64_t partial = 0;  // first partial row of a split unit
  std::int64_t score = -1;    // where its attention score by block begins, if somebody wants that

  std::int32_t num_chunks() const { return chunk_end - chunk_begin; }
};

struct AttentionTask {
  std::int32_t unit = 0;
  std::int32_t chunk = 0;  // of a split unit; otherwise the first, and the task does all of its unit's

  bool operator==(const AttentionTask&) const = default;
};

// A slice whose attention is reported by block: units [first_unit, end_unit) are its own.
struct ObservedSlice {
  std::int32_t sequence = 0;
  std::int32_t first_unit = 0;
  std::int32_t end_unit = 0;
};

// Per layer group. Chunks lie at fixed absolute positions and are merged in order, so the result of a row
// does not depend on how many tasks, threads or neighbours there are.
struct AttentionPlan {
  std::vector<AttentionUnit> units;
  std::vector<AttentionTask> tasks;
  std::vector<std::int32_t> split_units;      // indices of units whose chunks are merged in a second pass
  std::int64_t num_partial_rows = 0;          // (chunk, query head) rows of all split units
  std::int32_t max_unsplit_partial_rows = 0;  // of the largest unit that is one task
  std::vector<ObservedSlice> observed;
  std::int64_t num_unit_scores = 0;  // floats
};

// Reuses the plan's storage.
void plan_attention(std::span<const BatchSequence> sequences, const KvGroupView& group,
                    std::int32_t group_size, AttentionPlan& plan);

}  // namespace kvasir::backend
