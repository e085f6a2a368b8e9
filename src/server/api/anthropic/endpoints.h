// Anthropic's Messages API on the same engine.
#pragma once

#include <memory>

#include "server/api/api_context.h"
#include "server/http/response_writer.h"

namespace kvasir::server::api {

// Each answers the request, now or later.
void handle_messages(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_count_tokens(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);

}  // namespace kvasir::server::api
