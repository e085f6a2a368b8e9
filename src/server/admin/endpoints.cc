#include "server/admin/endpoints.h"

#include <string>

#include "server/metrics_text.h"

namespace kvasir::server {

void handle_live(const std::shared_ptr<Exchange>& exchange) {
  exchange->respond({.body = R"({"status":"live"})"});
}

void handle_ready(const ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  if (context.draining) return exchange->respond({.status = 503, .body = R"({"status":"draining"})"});
  exchange->respond({.body = R"({"status":"ready"})"});
}

void handle_metrics(const ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  exchange->respond({.content_type = std::string(kMetricsContentType),
                     .body = metrics_text(context.engine.stats(), context.metrics, context.model_name)});
}

}  // namespace kvasir::server
