// The parts of a server's memory budget beside its models.
#pragma once

#include <cstdint>
#include <string>

#include "base/logger.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "server/server.h"

namespace kvasir::cli {

struct ServerMemoryOptions {
  std::string request_memory;  // a size; empty: a part of the budget
  std::string guide_memory;    // likewise
  std::string adapter_memory;  // a size; empty: what those of the start take, more where folders are given
  std::string state_bytes;     // a size; empty: the default
};

// Chooses the budget where nobody did, for models whose files have so many bytes together, and takes what requests,
// stored things, guides and adapters may have of it: into the server's configuration, and as reserved bytes into the engine's.
// Errors: kUsage (a size that is none, or too small).
Status set_memory_aside(const ServerMemoryOptions& options, std::int64_t file_bytes, server::ServerConfig& server,
                        EngineConfig& config);

// Allows so many connections that all of them leave a body its room.
void fit_connections(server::ServerConfig& config, Logger& logger);

}  // namespace kvasir::cli
