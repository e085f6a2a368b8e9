// From a request to the model that it names.
#pragma once

#include <string>

#include "server/api/api_context.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {

// Whether its body has a field "model", which chooses one.
bool names_a_model(const Endpoint& endpoint);

// Has the endpoint answer with the context of the named model, which is loaded first if need be. `context` is the first
// model's: requests that name none, or one that is not there, are its.
void answer_with_model(ApiContext& context, const Endpoint& endpoint, const Writer& writer, const std::string& rest);

}  // namespace kvasir::server::api
