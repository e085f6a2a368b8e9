// What operators and their tools ask of a server.
#pragma once

#include <memory>

#include "server/api/api_context.h"
#include "server/http/response_writer.h"

namespace kvasir::server::api {

// 200 as long as the process answers.
void handle_live(const std::shared_ptr<http::ResponseWriter>& writer);
// 200, or 503 once the server drains.
void handle_ready(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
// What happened since the start, in one JSON object.
void handle_summary(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
// Prometheus text.
void handle_metrics(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);

}  // namespace kvasir::server::api
