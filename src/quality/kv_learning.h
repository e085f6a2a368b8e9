// A forecast of attention that is learned from requests and kept in a file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "learn/forecast_learning.h"

namespace kvasir::quality {

struct KvLearningConfig {
  std::string path;              // of the file; where there is one learning goes on from it
  double shadow_share = 0.01;    // of requests that keep all of their KV, to learn from
  double cpu_share = 0.01;       // of all processors' time, at most
  std::uint64_t seed = 0;        // of the hash that chooses; 0: another one each time
  std::function<void(const std::string& line)> warn = {};  // any thread
};

// Sets EngineConfig::kv_learner to what comes back, which must outlive the model's engines. An existing file's forecast takes the
// place of EngineConfig::kv_forecast_path. Requires: EngineConfig::model_path. Error: kBadFile naming the file.
Result<std::shared_ptr<const void>> begin_kv_learning(const KvLearningConfig& learning, EngineConfig& config);

// Writes the champion's weights and its duel into the file, by a rename. What the file has of the same model besides stays: it may
// be the one beside the model. Requires: a network. Errors: kBadFile (the file is no calibration), kMachine.
Status save_champion(const std::string& path, const std::string& model_path, const learn::Champion& champion);

}  // namespace kvasir::quality
