// GET /v1/operations: one JSON object with requests one by one, KV by owner and format, and the counts of
// which a watcher takes differences.
#include <chrono>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "base/process_memory.h"
#include "server/api/admin/visible_stats.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {
namespace {

void append_requests(JsonWriter& json, const std::vector<RequestActivity>& requests,
                     const auth::Tenant& tenant) {
  json.key("requests").begin_array();
  for (const RequestActivity& request : requests) {
    if (!tenant.is_operator && request.tenant != tenant.name) continue;
    json.begin_object()
        .member("id", request.client_id)
        .member("tenant", request.tenant)
        .member("stage", name_of(request.stage))
        .member("priority", request.priority)
        .member("choices", request.num_choices)
        .member("prompt_tokens", request.num_prompt_tokens)
        .member("cached_tokens", request.num_cached_tokens)
        .member("computed_tokens", request.num_computed_tokens)
        .member("generated_tokens", request.num_generated_tokens)
        .member("age_ms", request.age_ms)
        .end_object();
  }
  json.end_array();
}

void append_kv(JsonWriter& json, const EngineStats& stats, const std::vector<KvUse>& kv) {
  json.key("kv").begin_object();
  json.member("bytes_total", stats.kv_bytes_total)
      .member("bytes_held", stats.kv_bytes_used)
      .member("preemptions", stats.num_preemptions)
      .member("evictions", stats.num_kv_evictions);
  json.key("map").begin_array();
  for (const KvUse& use : kv) {
    json.begin_object()
        .member("owner", name_of(use.owner))
        .member("format", use.format)
        .member("bytes", use.bytes)
        .end_object();
  }
  json.end_array().end_object();
}

// Counts by upper bound; one more count is of those above all. Hidden ones are 0.
void append_histogram(JsonWriter& json, std::string_view name, const observe::Histogram& histogram,
                      bool is_shown) {
  json.key(name).begin_object().key("bounds_s").begin_array();
  for (const double bound : histogram.bounds()) json.value(bound);
  json.end_array().key("counts").begin_array();
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i)
    json.value(is_shown ? histogram.count_in(i) : 0);
  json.end_array().end_object();
}

std::int64_t num_answered(const observe::ServerMetrics& metrics, int status) {
  std::int64_t count = 0;
  for (const auto& [key, times] : metrics.responses()) {
    if (key.second == status) count += times;
  }
  return count;
}

void append_counts(JsonWriter& json, const EngineStats& stats, const observe::ServerMetrics& metrics,
                   bool is_for_operator) {
  json.member("running", stats.num_running)
      .member("waiting", stats.num_waiting)
      .member("oldest_waiting_ms", stats.oldest_waiting_ms)
      .member("connections", is_for_operator ? metrics.num_connections.load() : 0);
  json.key("finished")
      .begin_object()
      .member("requests", stats.num_requests_finished)
      .member("cancelled", stats.num_requests_cancelled)
      .member("failed", stats.num_requests_failed)
      .end_object();
  json.key("refused")
      .begin_object()
      .member("queue_full", stats.num_requests_beyond_queue)
      .member("too_late", stats.num_requests_too_late)
      .member("expired", stats.num_requests_expired)
      .member("rate_limit", is_for_operator ? num_answered(metrics, 429) : 0)
      .end_object();
  json.key("steps")
      .begin_object()
      .member("count", stats.num_steps)
      .member("sequences", stats.num_stepped_sequences)
      .member("seconds", stats.step_seconds_total)
      .end_object();
  json.key("tokens")
      .begin_object()
      .member("prompt", stats.num_prompt_tokens)
      .member("cached", stats.num_cached_prompt_tokens)
      .member("generated", stats.num_generated_tokens)
      .end_object();
  json.key("prefix_cache")
      .begin_object()
      .member("queried_tokens", stats.prefix_queries_tokens)
      .member("hit_tokens", stats.prefix_hits_tokens)
      .end_object();
}

std::string operations_json(const ApiContext& context, const EngineSnapshot& snapshot,
                            const auth::Tenant& tenant) {
  const EngineStats stats = visible_stats(context.engine.stats(), context.metrics, tenant);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string body;
  JsonWriter json(body);
  json.begin_object()
      .member("time_ms", std::chrono::duration_cast<std::chrono::milliseconds>(now).count())
      .member("model", context.model_name)
      .member("draining", context.draining.load());
  append_requests(json, snapshot.requests, tenant);
  append_counts(json, stats, context.metrics, tenant.is_operator);
  append_kv(json, stats, tenant.is_operator ? snapshot.kv : std::vector<KvUse>{});
  json.key("memory")
      .begin_object()
      .member("budget_bytes", context.memory_budget_bytes)
      .member("resident_bytes", tenant.is_operator ? rss_bytes() : 0)
      .end_object();
  append_histogram(json, "time_to_first_token", context.times->time_to_first_token, tenant.is_operator);
  append_histogram(json, "inter_token", context.times->inter_token, tenant.is_operator);
  json.end_object();
  return body;
}

// Nothing of what anybody says is in it, and only operators see others' requests and what would tell of them
// (visible_stats.h).
void answer_operations(const ApiContext& context, const Writer& writer) {
  context.engine.inspect([&context, writer](EngineSnapshot snapshot) {
    writer->post([&context, writer, snapshot = std::move(snapshot)] {
      writer->respond({.headers = {{"Cache-Control", "no-store"}},
                       .body = operations_json(context, snapshot, writer->request().tenant)});
    });
  });
}

}  // namespace

extern const Endpoint kOperations = {
    .method = "GET",
    .pattern = "/v1/operations",
    .meaning = "what runs now: requests, KV by owner and format, counts; what the page shows",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_operations(context, writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::api
