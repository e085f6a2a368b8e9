// GET /v1/responses/*?stream=true
#pragma once

#include <string>

#include "server/api/api_context.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {

// Streams the events of a response that is stored, and waits for the end of one that is being made. `starting_after` of
// the query leaves out events up to that number, but the last one.
void stream_stored_response(ApiContext& context, const Writer& writer, const std::string& id);

}  // namespace kvasir::server::api
