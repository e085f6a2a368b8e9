#include "server/observe/vllm_metrics.h"

#include <fmt/format.h>

#include <ctime>
#include <string>

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

// Gateways route by the adapters that a server runs; the value is the time, so that the last line counts.
void append_adapters(std::span<const ModelMetrics> models, PrometheusText& out) {
  out.begin("lora_requests_info", "gauge", "Adapters of requests in the batch and in the queue");
  for (const ModelMetrics& model : models) {
    std::string running, waiting;
    const auto add = [](std::string& names, const std::string& name) { names += (names.empty() ? "" : ",") + name; };
    for (const AdapterUse& use : model.engine.adapters) {
      if (use.num_running > 0) add(running, use.name);
      if (use.num_choices > use.num_running) add(waiting, use.name);
    }
    const std::string labels = fmt::format("{},{},{}", prometheus_label("running_lora_adapters", running),
                                           prometheus_label("waiting_lora_adapters", waiting),
                                           prometheus_label("max_lora", std::to_string(model.engine.num_adapters)));
    out.value("lora_requests_info", labels, static_cast<double>(std::time(nullptr)));
  }
}

}  // namespace

void append_vllm_metrics(std::span<const ModelMetrics> models, bool is_for_operator, std::string& text) {
  const auto labels_of = [](const ModelMetrics& model) { return prometheus_label("model_name", model.name); };
  PrometheusText out(text, "vllm:");
  for (const Alias& alias : kAliases) {
    out.begin(alias.name, alias.type, alias.help);
    for (const ModelMetrics& model : models) {
      out.value(alias.name, labels_of(model), static_cast<double>(model.engine.*alias.value));
    }
  }
  if (!is_for_operator) return;
  append_adapters(models, out);
  out.begin("kv_cache_usage_perc", "gauge", "Share of the KV cache in use, from 0 to 1");
  for (const ModelMetrics& model : models) {
    const double used = static_cast<double>(model.engine.kv_bytes_used);
    const double total = static_cast<double>(model.engine.kv_bytes_total);
    out.value("kv_cache_usage_perc", labels_of(model), total > 0.0 ? used / total : 0.0);
  }
  const auto histogram = [&](std::string_view name, std::string_view help, auto times_of) {
    out.begin(name, "histogram", help);
    for (const ModelMetrics& model : models) out.histogram(name, labels_of(model), times_of(model.times));
  };
  using Times = const ModelTimes&;
  using Observed = const Histogram&;
  histogram("time_to_first_token_seconds", "From arrival to the first token",
            [](Times times) -> Observed { return times.time_to_first_token; });
  histogram("inter_token_latency_seconds", "Between two tokens",
            [](Times times) -> Observed { return times.inter_token; });
  histogram("e2e_request_latency_seconds", "From arrival to the last token",
            [](Times times) -> Observed { return times.request; });
  histogram("request_queue_time_seconds", "Waiting for a seat",
            [](Times times) -> Observed { return times.start_stage(StartStage::kQueue); });
  histogram("request_prefill_time_seconds", "Computing the prompt",
            [](Times times) -> Observed { return times.start_stage(StartStage::kPrefill); });
}

}  // namespace kvasir::server::observe
