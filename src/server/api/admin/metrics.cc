// GET /metrics
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/admin/visible_stats.h"
#include "server/api/endpoint.h"
#include "server/observe/metrics_text.h"
#include "server/observe/tracing/tracer.h"
#include "server/observe/vllm_metrics.h"

namespace kvasir::server::api {
namespace {

// A tenant's own counts are kept for all models together.
std::vector<observe::ModelMetrics> visible_models(const ApiContext& context, const auth::Tenant& tenant) {
  const std::vector<const ApiContext*> models = contexts_of_models(context);
  std::vector<observe::ModelMetrics> visible;
  if (!tenant.is_operator) {
    visible.push_back({.name = models.size() == 1 ? context.model_name : "*",
                       .engine = visible_stats(total_stats(context), context.metrics, tenant),
                       .times = *context.times});
    return visible;
  }
  for (const ApiContext* const model : models) {
    visible.push_back({.name = model->model_name, .engine = model->engine.stats(), .times = *model->times});
  }
  return visible;
}

void answer_metrics(const ApiContext& context, const Writer& writer) {
  const auth::Tenant& tenant = writer->request().tenant;
  const std::vector<observe::ModelMetrics> models = visible_models(context, tenant);
  std::optional<std::string_view> only_tenant;
  if (!tenant.is_operator) only_tenant = tenant.name;
  const observe::ProcessState process{
      .draining = context.draining,
      .memory_budget_bytes = context.memory_budget_bytes,
      .request_memory_bytes = context.memory.used_bytes(),
      .request_memory_limit_bytes = context.memory.limit_bytes(),
      .logs = context.logs,
      .traces = context.tracer == nullptr ? nullptr : &context.tracer->counts()};
  std::string body = observe::metrics_text(models, context.metrics, process, only_tenant);
  if (context.has_vllm_metrics) observe::append_vllm_metrics(models, tenant.is_operator, body);
  writer->respond({.content_type = std::string(observe::kMetricsContentType), .body = std::move(body)});
}

}  // namespace

extern const Endpoint kMetrics = {
    .method = "GET",
    .pattern = "/metrics",
    .meaning = "Prometheus text",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_metrics(context, writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::api
