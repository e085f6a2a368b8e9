#include "server/observe/metrics_text.h"

#include <utility>

#include "base/process_memory.h"
#include "server/observe/prometheus_text.h"
#include "server/observe/kv_learning_metrics.h"
#include "server/observe/shadow_metrics.h"

namespace kvasir::server::observe {
namespace {

struct EngineMetric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::int64_t EngineStats::*value;
  bool is_for_all = false;  // else for operators alone (admin/visible_stats.h)
};

constexpr EngineMetric kEngineMetrics[] = {
    {"requests_running", "gauge", "Choices of requests in the batch", &EngineStats::num_running, true},
    {"requests_waiting", "gauge", "Choices of requests in the queue", &EngineStats::num_waiting, true},
    {"requests_finished_total", "counter", "Requests that ended, however",
     &EngineStats::num_requests_finished, true},
    {"requests_cancelled_total", "counter", "Requests cancelled", &EngineStats::num_requests_cancelled},
    {"requests_failed_total", "counter", "Requests that failed", &EngineStats::num_requests_failed},
    {"requests_rejected_total", "counter", "Requests refused before the queue",
     &EngineStats::num_requests_rejected, true},
    {"requests_too_late_total", "counter", "Of those refused: the first token would have come too late",
     &EngineStats::num_requests_too_late, true},
    {"requests_beyond_queue_total", "counter", "Of those refused: the queue was full",
     &EngineStats::num_requests_beyond_queue, true},
    {"requests_expired_total", "counter", "Choices of requests that did not start in the time they had",
     &EngineStats::num_requests_expired, true},
    {"tokens_in_flight", "gauge", "Tokens of running choices, prompts and answers",
     &EngineStats::num_running_tokens},
    {"prompt_tokens_total", "counter", "Prompt tokens taken in", &EngineStats::num_prompt_tokens, true},
    {"cached_prompt_tokens_total", "counter", "Prompt tokens served from the prefix cache",
     &EngineStats::num_cached_prompt_tokens, true},
    {"generation_tokens_total", "counter", "Tokens generated", &EngineStats::num_generated_tokens, true},
    {"preemptions_total", "counter", "Sequences set back to free KV blocks", &EngineStats::num_preemptions},
    {"guides_compiled_total", "counter", "Guides compiled", &EngineStats::num_guides_compiled},
    {"guides_known_total", "counter", "Guides that were asked for again while they were kept",
     &EngineStats::num_guides_known},
    {"guide_bytes", "gauge", "Bytes of compiled guides that are kept or in use (--guide-memory)",
     &EngineStats::guide_bytes},
    {"adapters", "gauge", "Adapters that requests may name", &EngineStats::num_adapters},
    {"adapter_bytes", "gauge", "Bytes of adapters that requests may name or still hold (--adapter-memory)",
     &EngineStats::adapter_bytes},
    {"adapter_loads_total", "counter", "Adapters loaded, those of the start included", &EngineStats::num_adapter_loads},
    {"adapter_evictions_total", "counter", "Idle adapters that left memory for another", &EngineStats::num_adapter_evictions},
    {"adapter_reloads_total", "counter", "Adapters that came back to memory for a request", &EngineStats::num_adapter_reloads},
    {"guided_answers_total", "counter", "Choices that ended as texts of their guide",
     &EngineStats::num_guided_answers, true},
    {"guided_answers_cut_total", "counter", "Choices under a guide that ran out of tokens",
     &EngineStats::num_guided_answers_cut, true},
    {"guided_forced_tokens_total", "counter", "Tokens that came where a guide allowed no other",
     &EngineStats::num_forced_tokens},
    {"kv_policies_given_up_total", "counter", "Sequences whose KV policy was given up for want of room",
     &EngineStats::num_kv_policies_given_up},
    {"kv_blocks", "gauge", "KV blocks there is room for as computed", &EngineStats::kv_blocks_total, true},
    {"kv_blocks_used", "gauge", "KV blocks that sequences hold", &EngineStats::kv_blocks_used},
    {"kv_bytes", "gauge", "Bytes of the KV cache", &EngineStats::kv_bytes_total, true},
    {"kv_bytes_used", "gauge", "Bytes of KV that sequences hold", &EngineStats::kv_bytes_used},
    {"kv_evictions_total", "counter", "Cached KV blocks that gave way to others",
     &EngineStats::num_kv_evictions},
    {"kv_bytes_peak", "gauge", "Most bytes of KV that sequences have held", &EngineStats::kv_bytes_peak},
    {"hidden_bytes_peak", "gauge", "Most bytes of hidden states of prompts that ran layer by layer",
     &EngineStats::hidden_bytes_peak},
    {"prefix_cache_queries_tokens_total", "counter", "Prompt tokens looked up in the prefix cache",
     &EngineStats::prefix_queries_tokens, true},
    {"prefix_cache_hits_tokens_total", "counter", "Prompt tokens found in the prefix cache",
     &EngineStats::prefix_hits_tokens, true},
    {"peak_resident_bytes", "gauge", "Most memory the process has held", &EngineStats::peak_rss_bytes},
};

std::string label_of(const ModelMetrics& model) { return prometheus_label("model", model.name); }

// Labels of these metrics name the model only where there are several.
std::string extended(const ModelMetrics& model, std::span<const ModelMetrics> models, std::string label) {
  return models.size() == 1 ? label : label_of(model) + "," + label;
}

// By tenant and route: who costs how much, and where the time goes.
void append_costs(PrometheusText& out, const ServerMetrics& server,
                  std::optional<std::string_view> only_tenant) {
  auto costs = server.costs();
  std::erase_if(costs, [&](const auto& entry) { return only_tenant && entry.first.first != *only_tenant; });
  const auto append = [&](std::string_view name, std::string_view help, auto value_of) {
    out.begin(name, "counter", help);
    for (const auto& [key, sums] : costs) {
      out.value(name, prometheus_label("tenant", key.first) + "," + prometheus_label("route", key.second),
                static_cast<double>(value_of(sums)));
    }
  };
  append("cost_requests_total", "Requests answered", [](const CostSums& s) { return s.num_requests; });
  append("cost_prompt_tokens_total", "Their prompts", [](const CostSums& s) { return s.prompt_tokens; });
  append("cost_cached_tokens_total", "Of these, from the prefix cache",
         [](const CostSums& s) { return s.cached_tokens; });
  append("cost_generated_tokens_total", "Their answers",
         [](const CostSums& s) { return s.completion_tokens; });
  append("cost_cpu_seconds_total", "Their share of the steps' time on all threads",
         [](const CostSums& s) { return s.cost.cpu_ms / 1000.0; });
  append("cost_kv_byte_seconds_total", "Keys and values held, over time",
         [](const CostSums& s) { return s.cost.kv_byte_seconds; });
  append("cost_preprocess_seconds_total", "From arrival until the engine had them",
         [](const CostSums& s) { return s.preprocess_ms / 1000.0; });
  append("cost_queue_seconds_total", "Waiting for a seat",
         [](const CostSums& s) { return s.cost.queue_ms / 1000.0; });
  append("cost_prefill_seconds_total", "Until the prompt was computed",
         [](const CostSums& s) { return s.cost.prefill_ms / 1000.0; });
  append("cost_decode_seconds_total", "From there to the last token",
         [](const CostSums& s) { return s.cost.decode_ms / 1000.0; });
  append("cost_flush_seconds_total", "From the last byte made to the last byte sent",
         [](const CostSums& s) { return s.flush_ms / 1000.0; });
}

void append_slices(PrometheusText& out, const ServerMetrics& server,
                   std::optional<std::string_view> only_tenant) {
  auto slices = server.slices();
  std::erase_if(slices, [&](const auto& entry) {
    return only_tenant && (entry.first.first != "tenant" || entry.first.second != *only_tenant);
  });
  const auto append = [&](std::string_view name, std::string_view help, auto value_of) {
    out.begin(name, "counter", help);
    for (const auto& [slice, sums] : slices) {
      out.value(name, prometheus_label("slice", slice.first) + "," + prometheus_label("value", slice.second),
                static_cast<double>(value_of(sums)));
    }
  };
  using Sums = RequestSlices::Sums;
  append("slice_requests_total", "Requests by one of their properties",
         [](const Sums& s) { return s.num_requests; });
  append("slice_first_token_seconds_total", "Their times to the first token",
         [](const Sums& s) { return s.first_token_seconds; });
  append("slice_request_seconds_total", "Their times to the last byte",
         [](const Sums& s) { return s.total_seconds; });
}

void append_server_counts(PrometheusText& out, const ServerMetrics& server) {
  out.begin("http_responses_total", "counter", "Responses by route and status");
  for (const auto& [key, count] : server.responses()) {
    out.value(
        "http_responses_total",
        prometheus_label("route", key.first) + "," + prometheus_label("code", std::to_string(key.second)),
        static_cast<double>(count));
  }
  out.begin("http_aborts_total", "counter", "Answers that did not reach their client, by cause");
  for (const http::AbortCause cause : http::kAbortCauses) {
    out.value("http_aborts_total", prometheus_label("cause", name_of(cause)),
              static_cast<double>(server.aborts(cause)));
  }
  constexpr std::string_view kCalls = "tool_calls_total";
  out.begin(kCalls, "counter", "Calls of tools in answers, by how they ended; a broken one came out as text");
  for (std::size_t i = 0; i < kCallEndNames.size(); ++i) {
    out.value(kCalls, prometheus_label("end", kCallEndNames[i]), static_cast<double>(server.tool_calls.by_end[i].load()));
  }
  out.begin("grpc_connections_calmed_total", "counter",
            "gRPC connections closed for cancelling too many calls, or sending too many empty frames");
  out.value("grpc_connections_calmed_total", "", static_cast<double>(server.num_calmed.load()));
  out.begin("http_connections", "gauge", "Open connections");
  out.value("http_connections", "", static_cast<double>(server.num_connections.load()));
}

void append_times(PrometheusText& out, std::span<const ModelMetrics> models) {
  const auto append = [&](std::string_view name, std::string_view help, Histogram ModelTimes::*times) {
    out.begin(name, "histogram", help);
    for (const ModelMetrics& model : models) out.histogram(name, label_of(model), model.times.*times);
  };
  append("time_to_first_token_seconds", "From a request's arrival to its first token",
         &ModelTimes::time_to_first_token);
  append("inter_token_seconds", "Between two tokens of one choice", &ModelTimes::inter_token);
  append("request_seconds", "From a request's arrival to its last token", &ModelTimes::request);
  constexpr std::string_view kStage = "start_stage_seconds";
  out.begin(kStage, "histogram", "What the time to the first token is made of; flush of streams alone");
  for (const ModelMetrics& model : models) {
    for (std::size_t i = 0; i < kStartStageNames.size(); ++i) {
      out.histogram(kStage, label_of(model) + "," + prometheus_label("stage", kStartStageNames[i]),
                    model.times.start_stage(static_cast<StartStage>(i)));
    }
  }
}

void append_queue_age(PrometheusText& out, std::span<const ModelMetrics> models) {
  constexpr std::string_view kAge = "queue_age_seconds";
  out.begin(kAge, "gauge", "How long the request has waited that waits longest, at the last step");
  for (const ModelMetrics& model : models) out.value(kAge, label_of(model), model.engine.oldest_waiting_ms / 1000.0);
}

void append_steps(PrometheusText& out, std::span<const ModelMetrics> models) {
  constexpr std::string_view kSeconds = "step_seconds", kBatch = "step_sequences";
  out.begin(kSeconds, "histogram", "How long steps take");
  for (const ModelMetrics& model : models) {
    out.histogram(kSeconds, label_of(model), kStepSecondsBounds, model.engine.steps_by_seconds,
                  model.engine.step_seconds_total);
  }
  out.begin(kBatch, "histogram", "How many sequences run in a step");
  for (const ModelMetrics& model : models) {
    out.histogram(kBatch, label_of(model), kStepSequencesBounds, model.engine.steps_by_sequences,
                  static_cast<double>(model.engine.num_stepped_sequences));
  }
}

void append_guides(PrometheusText& out, std::span<const ModelMetrics> models) {
  constexpr std::string_view kRefused = "guides_refused_total", kCompile = "guide_compile_seconds_total",
                             kMask = "guide_mask_seconds";
  out.begin(kRefused, "counter", "Guides refused, by the keyword of JSON Schema at fault");
  for (const ModelMetrics& model : models) {
    for (const GuideRefusals& of : model.engine.guide_refusals) {
      out.value(kRefused, extended(model, models, prometheus_label("keyword", of.keyword)),
                static_cast<double>(of.count));
    }
  }
  out.begin(kCompile, "counter", "Time of compiling guides");
  for (const ModelMetrics& model : models) out.value(kCompile, label_of(model), model.engine.guide_compile_seconds_total);
  out.begin(kMask, "histogram", "Times of finding the tokens that a guide allows, one for each choice and step");
  for (const ModelMetrics& model : models) {
    out.histogram(kMask, label_of(model), kMaskSecondsBounds, model.engine.masks_by_seconds,
                  model.engine.guide_mask_seconds_total);
  }
}

void append_drafts(PrometheusText& out, std::span<const ModelMetrics> models, std::string_view name,
                   std::string_view help, std::int64_t DraftCounts::*count) {
  out.begin(name, "counter", help);
  for (const ModelMetrics& model : models) {
    for (std::size_t i = 0; i < kDrafters.size(); ++i) {
      out.value(name, label_of(model) + "," + prometheus_label("drafter", kDrafters.at(i)),
                static_cast<double>(model.engine.drafts_by.at(i).*count));
    }
  }
}

void append_draft_estimates(PrometheusText& out, std::span<const ModelMetrics> models) {
  const auto append = [&](std::string_view name, std::string_view help, auto value_of) {
    out.begin(name, "counter", help);
    for (const ModelMetrics& model : models) {
      out.value(name, label_of(model), static_cast<double>(value_of(model.engine.draft_estimates)));
    }
  };
  append("draft_steps_total", "Steps with guesses beside which no prompt ran", [](const auto& of) { return of.num_steps; });
  append("draft_step_tokens_total", "Tokens that those steps brought", [](const auto& of) { return of.num_tokens; });
  append("draft_step_tokens_expected_total", "Tokens that those steps were expected to bring",
         [](const auto& of) { return of.num_tokens_expected; });
  append("draft_step_seconds_total", "Time of those steps", [](const auto& of) { return of.seconds; });
  append("draft_step_seconds_expected_total", "Time that those steps were expected to take",
         [](const auto& of) { return of.seconds_expected; });
}

void append_drafts(PrometheusText& out, std::span<const ModelMetrics> models) {
  append_drafts(out, models, "draft_tokens_total",
                "Guesses of tokens that steps have checked (--speculate), by what they came from", &DraftCounts::num_drafted);
  append_drafts(out, models, "draft_tokens_accepted_total", "Guesses that were right, each a step less",
                &DraftCounts::num_accepted);
  out.begin("draft_model_seconds_total", "counter", "Time that the draft model took (--draft-model)");
  for (const ModelMetrics& model : models) {
    out.value("draft_model_seconds_total", label_of(model), model.engine.draft_model_seconds_total);
  }
  append_draft_estimates(out, models);
}

void append_kv_formats(PrometheusText& out, std::span<const ModelMetrics> models) {
  constexpr std::string_view kName = "kv_format_bytes";
  out.begin(kName, "gauge", "Bytes of KV in memory by format, of what is cached as well");
  for (const ModelMetrics& model : models) {
    for (const KvFormatBytes& of : model.engine.kv_format_bytes) {
      out.value(kName, extended(model, models, prometheus_label("format", of.format)), static_cast<double>(of.bytes));
    }
  }
}

void append_traces(PrometheusText& out, const ExportCounts& traces) {
  constexpr std::string_view kExported = "trace_spans_exported_total", kDropped = "trace_spans_dropped_total";
  out.begin(kExported, "counter", "Spans that the collector has taken");
  out.value(kExported, "", static_cast<double>(traces.exported()));
  out.begin(kDropped, "counter", "Spans that it has not, by reason");
  for (std::size_t i = 0; i < kDropReasonNames.size(); ++i) {
    out.value(kDropped, prometheus_label("reason", kDropReasonNames[i]),
              static_cast<double>(traces.dropped(static_cast<DropReason>(i))));
  }
}

void append_logs(PrometheusText& out, const std::vector<DroppedLines>& logs) {
  constexpr std::string_view kName = "log_lines_dropped_total";
  out.begin(kName, "counter", "Lines of logs that nobody took, by log");
  for (const DroppedLines& lines : logs) {
    out.value(kName, prometheus_label("log", lines.log), static_cast<double>(lines.count()));
  }
}

void append_process(PrometheusText& out, const ProcessState& process) {
  const auto append = [&](std::string_view name, std::string_view help, std::int64_t value) {
    out.begin(name, "gauge", help);
    out.value(name, "", static_cast<double>(value));
  };
  append("draining", "1 while running requests may finish and new ones are refused",
         process.draining ? 1 : 0);
  append("resident_bytes", "Memory the process holds, pages of the model's file included", rss_bytes());
  append("memory_budget_bytes", "What --memory allows the process", process.memory_budget_bytes);
  append("request_memory_bytes", "Memory of connections, bodies and answers", process.request_memory_bytes);
  append("request_memory_limit_bytes", "Most of it (--request-memory)", process.request_memory_limit_bytes);
}

}  // namespace

std::string metrics_text(std::span<const ModelMetrics> models, const ServerMetrics& server,
                         const ProcessState& process, std::optional<std::string_view> only_tenant) {
  std::string text;
  PrometheusText out(text, "kvasir_");
  for (const EngineMetric& metric : kEngineMetrics) {
    if (only_tenant && !metric.is_for_all) continue;
    out.begin(metric.name, metric.type, metric.help);
    for (const ModelMetrics& model : models) {
      out.value(metric.name, label_of(model), static_cast<double>(model.engine.*metric.value));
    }
  }
  append_queue_age(out, models);
  append_costs(out, server, only_tenant);
  append_slices(out, server, only_tenant);
  if (only_tenant) return text;
  append_process(out, process);
  append_steps(out, models);
  append_kv_formats(out, models);
  append_guides(out, models);
  append_drafts(out, models);
  append_shadows(out, models);
  append_kv_learning(out, models);
  append_times(out, models);
  append_server_counts(out, server);
  append_logs(out, process.logs);
  if (process.traces != nullptr) append_traces(out, *process.traces);
  return text;
}

}  // namespace kvasir::server::observe
