// The memory that each model of a server may take.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/logger.h"
#include "cli/model_set.h"
#include "engine/step_turn.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct ModelNeed {
  std::int64_t least_bytes = 0;    // that the model runs with
  std::int64_t process_bytes = 0;  // of these, for tokenizer, template and the program
};

// Shares EngineConfig::memory_bytes among models, so that any num_at_once() of them fit at once.
//
// Thread safety: none.
class ModelMemory {
 public:
  // Fills in the places' configurations, for weights, workspace and KV. One model has all of it. num_at_once() is at
  // most max_loaded, unless that is 0. Models that were found in a folder and do not run are left out with a warning.
  // Errors: kBadFile, kMachine (the largest does not fit alone).
  static Result<ModelMemory> share(std::vector<ModelPlace>& places, const EngineConfig& config,
                                   std::int32_t max_loaded, Logger& logger);

  // Fills in the configuration of a model that comes later. It takes the place of the smallest of those that fit at
  // once. Errors: kBadFile, kMachine (it does not fit).
  Status fit(ModelPlace& place);

  std::int32_t num_at_once() const { return num_at_once_; }

 private:
  explicit ModelMemory(const EngineConfig& config) : config_(config) {}

  Status choose_num_at_once(std::int32_t max_loaded);
  void configure(ModelPlace& place, const ModelNeed& need, std::int64_t spare_bytes) const;

  EngineConfig config_;     // of the server: memory and guides of all models together
  bool is_shared_ = false;  // false: one model at a time has it all
  std::int32_t num_at_once_ = 1;
  std::int64_t budget_bytes_ = 0;          // of all that are loaded
  std::int64_t spare_bytes_ = 0;           // of each, beyond its least
  std::vector<std::int64_t> least_bytes_;  // of all, descending
  std::shared_ptr<StepTurn> turns_;
};

}  // namespace kvasir::cli
