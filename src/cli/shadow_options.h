// Flags of answers that are scored again while the server runs.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/logger.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "quality/quality_gate.h"

namespace kvasir::cli {

struct ShadowOptions {
  double share = 0.0;
  quality::GateConfig gate;
  std::string canary;   // a KV policy that takes the default's place, tenant by tenant; empty: none
  std::string against;  // a model that scores instead of the served one; empty: none

  bool is_on() const { return share > 0.0; }
};

// --kv-shadow, --kv-shadow-kl, --kv-auto-resume, --kv-canary and --shadow-against.
void add_shadow_options(CLI::App& verb, ShadowOptions& options);

// Takes over the server's own policy. Error (kUsage): a flag that means nothing without another, or with several models.
Status set_shadows(ShadowOptions& options, const KvParams& kv, std::size_t num_models);

// Bytes that the model needs that scores, out of the budget; 0: there is none. Errors: as store::resolve_model.
Result<std::int64_t> bytes_of_scorer(const ShadowOptions& options);

// Wraps an engine so that its answers are scored; without shadows it comes back as it is. `config`: it was loaded with, and its
// journal is told of them. The logger outlives the engine. Errors: those of loading the model that scores, kUsage (its tokens are others).
Result<std::unique_ptr<Engine>> with_shadows(std::unique_ptr<Engine> engine, const ShadowOptions& options, const EngineConfig& config, Logger& logger);

}  // namespace kvasir::cli
