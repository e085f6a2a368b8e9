// Flags that say what tokens are guessed from.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "cli/engine_options.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// --speculate and add_draft_options.
void add_speculate_option(CLI::App& verb, EngineOptions& options, const std::string& by_default);
// --max-draft-tokens, --draft-heads, --draft-model and --draft-rule.
void add_draft_options(CLI::App& verb, EngineOptions& options);

// Errors: kUsage, naming the flag; as resolve_model() of the draft model.
Status set_drafters(const EngineOptions& options, EngineConfig& config);

}  // namespace kvasir::cli
