// OpenAI's Responses API on the same engine; nothing is stored.
#pragma once

#include <memory>

#include "server/api/api_context.h"
#include "server/http/response_writer.h"

namespace kvasir::server::api {

// Answers the request, now or later.
void handle_responses(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);

}  // namespace kvasir::server::api
