// What `kvasir serve` prints when it listens: models, memory, addresses, a request to try.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/model_set.h"
#include "kvasir/engine.h"
#include "server/server.h"

namespace kvasir::cli {

// The first model, which is loaded unless all are found in a folder, and the names of the others.
struct Announced {
  const std::vector<ModelPlace>& places;
  const Engine* first = nullptr;  // null: it is loaded on demand
};

std::string listening_url(const server::ServerConfig& config, std::uint16_t port);

// On stdout: lines, or one JSON document.
void announce(const Announced& models, const server::Server& server, const server::ServerConfig& config, bool as_json);

}  // namespace kvasir::cli
