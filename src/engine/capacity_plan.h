// What a model needs here for so many users, and how fast it can be at most, before anything of it is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/machine_limits.h"
#include "engine/open_model.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "model/config.h"
#include "model/weight_footprint.h"

namespace kvasir {

struct CapacityRequest {
  std::int32_t context_tokens = 0;  // of each user: prompt and answer
  std::int32_t answer_tokens = 0;   // of these; 0: as many as prompt
  std::int32_t num_users = 1;       // at the same time
  std::int64_t memory_bytes = 0;    // that there is
  double kv_share = 1.0;            // that a policy keeps, of the KV's bytes in f16
};

// The model, as its header has it.
struct CapacityModel {
  model::ModelConfig config;
  model::WeightFootprint weights;
  std::int64_t program_bytes = 0;  // the process with tokenizer and template
};

struct CapacityPlan {
  bool fits = false;
  std::int64_t weights_bytes = 0;  // packed, and norms
  std::int64_t mapped_bytes = 0;   // of the file, for row look-ups
  std::int64_t workspace_bytes = 0;
  std::int64_t kv_bytes = 0;
  std::int64_t program_bytes = 0;
  std::int64_t total_bytes = 0;
  std::int64_t budget_bytes = 0;  // that `serve --memory` starts with
  std::int64_t kv_bytes_per_token = 0;  // of all layers, where none has passed its window
  std::int32_t max_users = 0;           // at this context; 0: not one
  std::int32_t max_context_tokens = 0;  // with so many users, at most the model's; 0: none
  std::vector<std::string> advice;      // where it does not fit: a line each, the mildest first
};

// By the formulas of plan_memory(), for a server with `--ctx` and `--max-num-seqs` as requested. Takes from `config`
// the format of KV and the tokens of a step. Error (kUsage): a context beyond the model's.
Result<CapacityPlan> plan_capacity(const EngineConfig& config, const CapacityModel& model,
                                   const CapacityRequest& request);

// Rates that the machine's limits allow, times the share of them that Kvasir reaches (docs/PERFORMANCE.md).
struct RatePlan {
  double decode_tokens_per_s = 0.0;  // of all users together
  double prefill_tokens_per_s = 0.0;
  bool is_bandwidth_bound = true;  // decoding
};
RatePlan plan_rates(const EngineConfig& config, const CapacityModel& model, const CapacityRequest& request,
                    const backend::MachineLimits& limits);

// Configuration and sizes of an opened model. Errors: kBadFile.
Result<CapacityModel> measure_model(const OpenedModel& opened, const EngineConfig& config);

}  // namespace kvasir
