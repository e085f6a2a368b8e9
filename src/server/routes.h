// Every path the server answers.
#pragma once

#include <vector>

#include "server/http/router.h"
#include "server/openai/api_context.h"

namespace kvasir::server {

// The context outlives the routes.
std::vector<Route> make_routes(ApiContext& context);

}  // namespace kvasir::server
