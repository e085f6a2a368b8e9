// OpenAI's Responses API on the same engine; nothing is stored.
#pragma once

#include <memory>

#include "server/api/api_context.h"
#include "server/http/exchange.h"

namespace kvasir::server {

// Answers the exchange, now or later.
void handle_responses(ApiContext& context, const std::shared_ptr<Exchange>& exchange);

}  // namespace kvasir::server
