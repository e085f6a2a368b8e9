// Flags of a forecast that is learned while the server runs.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "base/logger.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct LearnOptions {
  std::string file;  // empty: nothing is learned
  double shadow_share = 0.01, cpu_share = 0.01;
};

// --kv-learn, --kv-shadow-share and --kv-learn-cpu.
void add_learn_options(CLI::App& verb, LearnOptions& options);

// Before a model is looked for. Errors: kUsage (several models), kBadFile (the file has no forecast), kMachine (nor can be written).
Status check_learning(const LearnOptions& options, std::size_t num_models);

// A line for each of --kv-forecast and --kv-learn that the requests' defaults and --kv-canary leave without effect.
void warn_of_unused_forecasts(const LearnOptions& options, const EngineConfig& config, const KvParams& defaults, const std::string& canary, Logger& logger);

// The learner for engines of this configuration; null where nothing is learned. It must outlive them, and the logger outlives it.
// `model`: as MODEL. Errors: as store::resolve_model and quality::begin_kv_learning.
Result<std::shared_ptr<const void>> begin_learning(const LearnOptions& options, const std::string& model, EngineConfig& config, Logger& logger);

}  // namespace kvasir::cli
