// GET /metrics
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/admin/visible_stats.h"
#include "server/api/endpoint.h"
#include "server/observe/metrics_text.h"
#include "server/observe/tracing/tracer.h"
#include "server/observe/vllm_metrics.h"

namespace kvasir::server::api {
namespace {

void answer_metrics(const ApiContext& context, const Writer& writer) {
  const auth::Tenant& tenant = writer->request().tenant;
  const EngineStats stats = visible_stats(context.engine.stats(), context.metrics, tenant);
  std::optional<std::string_view> only_tenant;
  if (!tenant.is_operator) only_tenant = tenant.name;
  const observe::ProcessState process{
      .draining = context.draining,
      .memory_budget_bytes = context.memory_budget_bytes,
      .request_memory_bytes = context.memory.used_bytes(),
      .request_memory_limit_bytes = context.memory.limit_bytes(),
      .logs = context.logs,
      .traces = context.tracer == nullptr ? nullptr : &context.tracer->counts()};
  std::string body = observe::metrics_text(stats, context.metrics, process, context.model_name, only_tenant);
  if (context.has_vllm_metrics)
    observe::append_vllm_metrics(stats, context.metrics, context.model_name, tenant.is_operator, body);
  writer->respond({.content_type = std::string(observe::kMetricsContentType), .body = std::move(body)});
}

}  // namespace

extern const Endpoint kMetrics = {
    .method = "GET",
    .pattern = "/metrics",
    .meaning = "Prometheus text",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_metrics(context, writer); },
};

}  // namespace kvasir::server::api
