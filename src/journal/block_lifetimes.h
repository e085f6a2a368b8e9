// How the cells of one sequence fared that its policy touched.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kv/policy/journal.h"

namespace kvasir::journal {

// Attention is per query, summed over the query heads of a KV head, as in kv::CellAction::forecast.
struct BlockLifetime {
  std::int32_t group = 0;
  std::int32_t cell = 0;
  std::int32_t block = 0;                        // logical
  std::int32_t first_token = 0, last_token = 0;  // tokens computed at the first and last change
  std::int32_t num_changes = 0;
  kv::KvFormat from = kv::KvFormat::kF16;  // before the first change
  kv::KvFormat format = kv::KvFormat::kGone;
  float forecast = kv::kNoForecast;  // at the last change
  float score = 0.0f;                // likewise, in the policy's memory
};

// The attention per query that a cell got since its last change. It is the policy's memory at the end, less
// the rest of its memory at the change, divided by the weight of those queries in its memory. So a memory
// that decays counts later queries more. Nothing where it is unknown: the cell is gone, no query came, the
// policy remembers no attention or only a window of it, or the end's scores were dropped.
std::optional<float> realised_attention(const BlockLifetime& lifetime, const kv::SequenceEnd& end);

// Thread safety: none.
class BlockLifetimes {
 public:
  void add(const kv::StepRecord& step);
  // Ordered by group, cell and block.
  std::vector<BlockLifetime> ordered() const;

 private:
  std::unordered_map<std::uint64_t, BlockLifetime> by_cell_;
};

}  // namespace kvasir::journal
