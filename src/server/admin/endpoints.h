// What operators and their tools ask of a server.
#pragma once

#include <memory>

#include "server/http/exchange.h"
#include "server/api/api_context.h"

namespace kvasir::server {

// 200 as long as the process answers.
void handle_live(const std::shared_ptr<Exchange>& exchange);
// 200, or 503 once the server drains.
void handle_ready(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);
// What happened since the start, in one JSON object.
void handle_summary(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);
// Prometheus text.
void handle_metrics(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);

}  // namespace kvasir::server
