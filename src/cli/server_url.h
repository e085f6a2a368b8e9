// Where a running server is, for verbs that ask one.
#pragma once

#include <string>
#include <vector>

#include "cli/settings.h"

namespace kvasir::cli {

// Where `kvasir serve` would listen with the same settings.
std::string default_server_url(const std::vector<Setting>& settings);

}  // namespace kvasir::cli
