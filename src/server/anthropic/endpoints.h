// Anthropic's Messages API on the same engine.
#pragma once

#include <memory>

#include "server/api/api_context.h"
#include "server/http/exchange.h"

namespace kvasir::server {

// Each answers the exchange, now or later.
void handle_messages(ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_count_tokens(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);

}  // namespace kvasir::server
