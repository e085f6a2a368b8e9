// Whether a request asks for what the model can do, and what it leaves to the engine.
#pragma once

#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir {

// Fills in the settings that the request leaves to the engine: when it must start, and as many tokens as fit.
void apply_engine_defaults(Request& request, const EngineConfig& config, const ModelInfo& info);

// Errors: kUsage naming the field and its value, kUnmet where prompt and answer exceed the context.
Status check_request(const Request& request, const ModelInfo& info, bool has_tokenizer);

}  // namespace kvasir
