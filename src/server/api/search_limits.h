// How much a search may draw.
#pragma once

#include <cstdint>
#include <vector>

#include "kvasir/request.h"
#include "server/api_error.h"

namespace kvasir::server::api {

// 0: no limit.
struct SearchLimits {
  std::int64_t max_total_tokens = 0;  // of all candidates of all prompts
  std::int64_t max_ms = 0;            // from when the engine is asked
};

// Each candidate gets the same part of the tokens: so they are never passed, and nobody's company matters. `max_tokens` becomes
// that part where it is less than a request asked for. Errors (400): less than a token for each.
ApiStatus share_tokens(const SearchLimits& limits, std::int32_t candidates_per_request, std::vector<Request>& requests,
                       std::int32_t& max_tokens);

}  // namespace kvasir::server::api
