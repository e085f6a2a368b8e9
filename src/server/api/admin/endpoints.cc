#include "server/api/admin/endpoints.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "server/api/admin/visible_stats.h"
#include "server/observe/metrics_text.h"
#include "server/observe/tracing/tracer.h"
#include "server/observe/vllm_metrics.h"

namespace kvasir::server::api {

void handle_live(const std::shared_ptr<http::ResponseWriter>& writer) {
  writer->respond({.body = R"({"status":"live"})"});
}

void handle_ready(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  if (!context.draining) return writer->respond({.body = R"({"status":"ready"})"});
  const std::int64_t at_stop = context.metrics.num_answering_at_stop;
  const std::int64_t left =
      std::clamp<std::int64_t>(context.metrics.num_answering - 1, 0, at_stop);  // without this
  std::string body;
  JsonWriter(body)
      .begin_object()
      .member("status", "draining")
      .member("percent", at_stop == 0 ? 100 : 100 * (at_stop - left) / at_stop)
      .end_object();
  writer->respond({.status = 503, .body = std::move(body)});
}

void handle_summary(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  const auth::Tenant& tenant = writer->request().tenant;
  const EngineStats stats = visible_stats(context.engine.stats(), context.metrics, tenant);
  const VisibleMeans means = visible_means(stats, context.metrics, tenant);
  std::string body;
  JsonWriter(body)
      .begin_object()
      .member("requests", stats.num_requests_finished)
      .member("requests_running", stats.num_running)
      .member("requests_waiting", stats.num_waiting)
      .member("requests_rejected", stats.num_requests_rejected)
      .member("prompt_tokens", stats.num_prompt_tokens)
      .member("cached_tokens", stats.num_cached_prompt_tokens)
      .member("generated_tokens", stats.num_generated_tokens)
      .member("mean_latency_s", means.request_s)
      .member("mean_time_to_first_token_s", means.first_token_s)
      .member("generated_tokens_per_s", means.generated_tokens_per_s)
      .member("mean_batch", means.batch)
      .end_object();
  writer->respond({.body = std::move(body)});
}

void handle_metrics(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  const auth::Tenant& tenant = writer->request().tenant;
  const EngineStats stats = visible_stats(context.engine.stats(), context.metrics, tenant);
  std::optional<std::string_view> only_tenant;
  if (!tenant.is_operator) only_tenant = tenant.name;
  const observe::ProcessState process{
      .draining = context.draining,
      .memory_budget_bytes = context.memory_budget_bytes,
      .request_memory_bytes = context.memory.used_bytes(),
      .request_memory_limit_bytes = context.memory.limit_bytes(),
      .traces = context.tracer == nullptr ? nullptr : &context.tracer->counts()};
  std::string body = observe::metrics_text(stats, context.metrics, process, context.model_name, only_tenant);
  if (context.has_vllm_metrics)
    observe::append_vllm_metrics(stats, context.metrics, context.model_name, tenant.is_operator, body);
  writer->respond({.content_type = std::string(observe::kMetricsContentType), .body = std::move(body)});
}

}  // namespace kvasir::server::api
