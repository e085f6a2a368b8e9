// GET /v1/metrics: what happened since the start
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/api/admin/visible_stats.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {
namespace {

void answer_summary(const ApiContext& context, const Writer& writer) {
  const auth::Tenant& tenant = writer->request().tenant;
  const EngineStats stats = visible_stats(total_stats(context), context.metrics, tenant);
  const VisibleMeans means = visible_means(context, stats, tenant);
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

}  // namespace

extern const Endpoint kSummary = {
    .method = "GET",
    .pattern = "/v1/metrics",
    .meaning = "requests, tokens, latency, rate and batch size in one JSON object",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_summary(context, writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::api
