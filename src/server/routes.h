// Every path the server answers: endpoints.def as a table.
#pragma once

#include <span>
#include <vector>

#include "server/api/endpoint.h"
#include "server/http/router.h"

namespace kvasir::server {

std::span<const api::Endpoint* const> endpoints();

// The context outlives the routes.
std::vector<http::Route> make_routes(api::ApiContext& context);
// The same, but at the root stands what Ollama has there: its clients look whether it runs.
std::vector<http::Route> make_ollama_routes(api::ApiContext& context);

}  // namespace kvasir::server
