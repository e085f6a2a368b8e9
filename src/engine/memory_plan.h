// How the memory budget is shared out, decided before anything large is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "model/config.h"

namespace kvasir {

struct MemoryPlan {
  std::int64_t budget_bytes = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t process_bytes = 0;   // the program itself, and pages of the model's file that it reads from
  std::int64_t reserved_bytes = 0;  // for what the engine's user does beside it
  std::int64_t kv_bytes = 0;
  std::int32_t max_model_len_tokens = 0;
  std::int32_t max_prefill_only_tokens = 0;  // whose hidden states there is room for, in the workspace
  std::vector<std::int32_t> num_blocks;      // per layer group

  std::string describe() const;  // one line for the log
};

// `weight_bytes` is what packing will take or took, `process_bytes` what the process has besides. Window
// groups get room for every running sequence's window and as much again of cached prefixes; the full groups
// get the rest, at most max_num_seqs full-length sequences. Hidden states of a prompt of the greatest length
// get at most a sixteenth of what the weights leave. Errors: kMachine when not even one sequence of a useful
// length fits, kUsage when ctx exceeds the model's.
Result<MemoryPlan> plan_memory(const EngineConfig& config, const model::ModelConfig& model,
                               std::int64_t weight_bytes, std::int64_t process_bytes,
                               std::int64_t available_bytes);

}  // namespace kvasir
