// How the memory budget is shared out, decided before anything large is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "model/config.h"
#include "model/workspace.h"

namespace kvasir {

// Rows of logits that are computed at once: fewer for large vocabularies.
std::int32_t max_logit_rows(const model::ModelConfig& model);

// Blocks of KV, and what they take.
struct KvSize {
  std::vector<std::int64_t> num_blocks;  // per layer group
  std::int64_t num_bytes = 0;
  std::int64_t num_full_bytes = 0;  // of these, of the groups without a window
  std::int64_t table_bytes = 0;     // besides, of the bookkeeping of blocks
  std::int64_t num_block_ids = 0;
};
// For so many tokens in the groups without a window, in sequences of at most `length`. Window groups have room for
// every running sequence's window and as much again of cached prefixes.
KvSize kv_of_tokens(const EngineConfig& config, const model::ModelConfig& model, std::int64_t length,
                    std::int64_t num_tokens);

// The parts of the workspace that not every run touches.
struct WorkspaceUse {
  std::int32_t num_logit_rows = 0;
  std::int32_t num_rows = 0;  // 0: of the largest step, config.max_num_batched_tokens
  model::WorkspaceParts parts = {};
};
std::int64_t workspace_bytes(const EngineConfig& config, const model::ModelConfig& model, const WorkspaceUse& use);

// The budget of an engine that was given none: half of what is available, or a quarter beside the weights where that is
// more; a tenth stays free.
std::int64_t default_memory_bytes(std::int64_t weight_bytes, std::int64_t available_bytes);

// A budget in whole MiB that a server with such parts starts with: it sets aside an eighth for requests, and a
// sixteenth of what the weights leave for prompts that are only scored. `bytes`: of all parts, KV included.
std::int64_t sufficient_budget(std::int64_t bytes, std::int64_t kv_bytes, std::int64_t reserved_bytes,
                               std::int64_t vocab_size);

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
// length fits, kUsage when ctx exceeds the model's. `to_come_bytes`: what the process will have besides when the model is
// loaded, at a guess; only the budget that the error names counts it.
Result<MemoryPlan> plan_memory(const EngineConfig& config, const model::ModelConfig& model,
                               std::int64_t weight_bytes, std::int64_t process_bytes,
                               std::int64_t available_bytes, std::int64_t to_come_bytes = 0);

}  // namespace kvasir
