#include "server/observe/vllm_metrics.h"

#include "server/observe/prometheus_text.h"

namespace kvasir::server::observe {
namespace {

struct Alias {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::int64_t EngineStats::*value;
};

constexpr Alias kAliases[] = {
    {"num_requests_running", "gauge", "Requests in the batch", &EngineStats::num_running},
    {"num_requests_waiting", "gauge", "Requests in the queue", &EngineStats::num_waiting},
    {"num_preemptions_total", "counter", "Sequences set back", &EngineStats::num_preemptions},
    {"prompt_tokens_total", "counter", "Prompt tokens taken in", &EngineStats::num_prompt_tokens},
    {"generation_tokens_total", "counter", "Tokens generated", &EngineStats::num_generated_tokens},
    {"prefix_cache_queries_total", "counter", "Prompt tokens looked up", &EngineStats::prefix_queries_tokens},
    {"prefix_cache_hits_total", "counter", "Prompt tokens found", &EngineStats::prefix_hits_tokens},
};

}  // namespace

void append_vllm_metrics(const EngineStats& engine, const ServerMetrics& server, std::string_view model_name,
                         bool is_for_operator, std::string& text) {
  const std::string labels = prometheus_label("model_name", model_name);
  PrometheusText out(text, "vllm:");
  for (const Alias& alias : kAliases) {
    out.begin(alias.name, alias.type, alias.help);
    out.value(alias.name, labels, static_cast<double>(engine.*alias.value));
  }
  if (!is_for_operator) return;
  out.begin("kv_cache_usage_perc", "gauge", "Share of the KV cache in use, from 0 to 1");
  const double used = static_cast<double>(engine.kv_bytes_used);
  out.value("kv_cache_usage_perc", labels,
            engine.kv_bytes_total > 0 ? used / static_cast<double>(engine.kv_bytes_total) : 0.0);
  const auto histogram = [&](std::string_view name, std::string_view help, const Histogram& observed) {
    out.begin(name, "histogram", help);
    out.histogram(name, labels, observed);
  };
  histogram("time_to_first_token_seconds", "From arrival to the first token", server.time_to_first_token);
  histogram("inter_token_latency_seconds", "Between two tokens", server.inter_token);
  histogram("e2e_request_latency_seconds", "From arrival to the last token", server.request);
  histogram("request_queue_time_seconds", "Waiting for a seat", server.start_stage(StartStage::kQueue));
  histogram("request_prefill_time_seconds", "Computing the prompt", server.start_stage(StartStage::kPrefill));
}

}  // namespace kvasir::server::observe
