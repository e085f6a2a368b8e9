// The catalogue and the hub, for clients of a running server.
#pragma once

#include "base/logger.h"
#include "cli/model_memory.h"
#include "cli/shadow_options.h"
#include "server/api/model_library.h"

namespace kvasir::cli {

// Models of the catalogue and hf:OWNER/NAME, into the user's store. The logger outlives it.
server::api::ModelLibrary make_model_library(ModelMemory memory, const ShadowOptions& shadows, Logger& logger);

}  // namespace kvasir::cli
