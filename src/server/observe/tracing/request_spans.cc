#include "server/observe/tracing/request_spans.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/utf8.h"

namespace kvasir::server::observe {
namespace {

constexpr std::size_t kMaxAttributeBytes = 256;

// Text that a client chose, bounded and as UTF-8.
std::string bounded(std::string_view text) { return to_valid_utf8(text.substr(0, kMaxAttributeBytes)); }

// Collects attributes; texts that are empty are left out.
class Attributes {
 public:
  explicit Attributes(std::vector<Attribute>& out) : out_(out) {}

  Attributes& text(std::string_view name, std::string value) {
    if (!value.empty()) out_.push_back({std::string(name), std::move(value)});
    return *this;
  }
  Attributes& number(std::string_view name, std::int64_t value) {
    out_.push_back({std::string(name), value});
    return *this;
  }
  Attributes& real(std::string_view name, double value) {
    out_.push_back({std::string(name), value});
    return *this;
  }
  Attributes& flag(std::string_view name, bool value) {
    out_.push_back({std::string(name), value});
    return *this;
  }
  Attributes& texts(std::string_view name, std::vector<std::string> values) {
    if (!values.empty()) out_.push_back({std::string(name), std::move(values)});
    return *this;
  }

 private:
  std::vector<Attribute>& out_;
};

std::string_view operation_of(std::string_view route) {
  constexpr auto kOperations = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"/v1/chat/completions", "chat"},
      {"/v1/responses", "chat"},
      {"/v1/messages", "chat"},
      {"/api/chat", "chat"},
      {"/v1/completions", "text_completion"},
      {"/api/generate", "text_completion"},
      {"/completion", "text_completion"},
      {"/infill", "text_completion"},
      {"/v1/generate", "text_completion"},
      {"/v1/embeddings", "embeddings"},
      {"/api/embed", "embeddings"},
      {"/api/embeddings", "embeddings"},
      {"/embedding", "embeddings"},
      {"/embeddings", "embeddings"},
  });
  for (const auto& [known, operation] : kOperations) {
    if (route == known) return operation;
  }
  return {};
}

bool is_known_method(std::string_view method) {
  constexpr std::array<std::string_view, 9> kKnown = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                                      "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  return std::ranges::find(kKnown, method) != kKnown.end();
}

void add_http(const AccessRecord& record, const TracedServer& server, Attributes& out) {
  const bool is_known = is_known_method(record.method);
  out.text("http.request.method", is_known ? record.method : "_OTHER");
  if (!is_known) out.text("http.request.method_original", bounded(record.method));
  out.text("url.path", bounded(record.path)).text("url.scheme", server.is_https ? "https" : "http");
  if (record.has_route()) out.text("http.route", record.route);
  if (record.status != 0) out.number("http.response.status_code", record.status);
  out.text("user_agent.original", bounded(record.trace->user_agent));
}

// By the conventions for HTTP servers what a client did wrong is no error of the span.
std::string error_type_of(const AccessRecord& record) {
  if (!record.abort_cause.empty()) return std::string(record.abort_cause);
  if (record.stream_failed) return "stream_failed";
  return record.status >= 400 ? std::to_string(record.status) : std::string();
}

void add_generation(const AccessRecord& record, const TracedServer& server, Attributes& out) {
  const GenerationRecord& generation = *record.generation;
  const GenerationSettings& settings = generation.settings;
  const bool is_embedding = operation_of(record.route) == "embeddings";
  out.text("gen_ai.request.model", server.model_name).text("gen_ai.response.model", server.model_name);
  out.text("gen_ai.response.id", bounded(generation.id));
  out.number("gen_ai.usage.input_tokens", generation.usage.prompt_tokens);
  if (!is_embedding) {
    out.flag("gen_ai.request.stream", settings.is_stream);
    if (settings.num_choices != 1) out.number("gen_ai.request.choice.count", settings.num_choices);
    if (settings.max_tokens) out.number("gen_ai.request.max_tokens", *settings.max_tokens);
    out.real("gen_ai.request.temperature", settings.temperature).real("gen_ai.request.top_p", settings.top_p);
    out.number("gen_ai.usage.output_tokens", generation.usage.completion_tokens);
    out.number("gen_ai.usage.cache_read.input_tokens", generation.usage.cached_tokens);
    std::vector<std::string> reasons;
    for (const FinishReason reason : generation.finish_reasons) {
      reasons.push_back(reason == FinishReason::kLength ? "length" : "stop");
    }
    out.texts("gen_ai.response.finish_reasons", std::move(reasons));
    if (generation.first_token_ms > 0.0) {
      out.real("gen_ai.server.time_to_first_token", generation.first_token_ms / 1000.0);
    }
  }
  out.number("kvasir.priority", generation.priority);
  out.real("kvasir.preprocess_seconds", generation.preprocess_ms / 1000.0);
  out.real("kvasir.cpu_seconds", generation.cost.cpu_ms / 1000.0);
  out.real("kvasir.kv_byte_seconds", generation.cost.kv_byte_seconds);
  out.number("kvasir.preemptions", generation.cost.num_preemptions);
}

void add_request(const AccessRecord& record, const TracedServer& server, Attributes out) {
  add_http(record, server, out);
  out.text("error.type", error_type_of(record));
  if (const std::string_view operation = operation_of(record.route); !operation.empty()) {
    out.text("gen_ai.operation.name", std::string(operation)).text("gen_ai.provider.name", "kvasir");
  }
  if (record.generation) add_generation(record, server, out);
  out.text("kvasir.request_id", record.request_id);
  out.text("kvasir.client_request_id", bounded(record.client_request_id));
  out.text("kvasir.tenant", bounded(record.tenant));
  out.real("kvasir.flush_seconds", record.flush_ms / 1000.0);
}

struct Stage {
  std::string_view name;
  double ms = 0.0;
  std::string_view tokens_name;  // empty: it has none
  std::int64_t num_tokens = 0;
};

// In their order; those without any time did not begin.
std::array<Stage, 3> stages_of(const GenerationRecord& generation) {
  const RequestCost& cost = generation.cost;
  const Usage& usage = generation.usage;
  const double decode_ms = usage.completion_tokens > 0 ? cost.decode_ms : 0.0;
  return {
      Stage{"queue", cost.queue_ms, {}, 0},
      Stage{"prefill", cost.prefill_ms, "kvasir.computed_tokens", usage.prompt_tokens - usage.cached_tokens},
      Stage{"decode", decode_ms, "kvasir.generated_tokens", usage.completion_tokens}};
}

Span::Time after(Span::Time time, double ms) {
  return time +
         std::chrono::duration_cast<Span::Time::duration>(std::chrono::duration<double, std::milli>(ms));
}

void append_stages(const GenerationRecord& generation, const Span& request, std::vector<Span>& spans) {
  Span::Time begin = after(request.begin, generation.preprocess_ms);
  for (const Stage& stage : stages_of(generation)) {
    if (stage.ms <= 0.0) continue;
    Span span = {.trace_id = request.trace_id,
                 .span_id = new_span_id(),
                 .parent_span_id = request.span_id,
                 .trace_state = request.trace_state,
                 .name = std::string(stage.name),
                 .begin = std::min(begin, request.end),
                 .end = std::min(after(begin, stage.ms), request.end),
                 .attributes = {}};
    if (!stage.tokens_name.empty()) Attributes(span.attributes).number(stage.tokens_name, stage.num_tokens);
    begin = span.end;
    spans.push_back(std::move(span));
  }
}

}  // namespace

std::size_t num_request_spans(const AccessRecord& record) {
  if (!record.generation) return 1;
  const auto stages = stages_of(*record.generation);
  return 1 +
         static_cast<std::size_t>(std::ranges::count_if(stages, [](const Stage& s) { return s.ms > 0.0; }));
}

void append_request_spans(const TracedRequest& request, const TracedServer& server,
                          std::vector<Span>& spans) {
  const AccessRecord& record = request.record;
  const RequestTrace& trace = *record.trace;
  const std::string method = is_known_method(record.method) ? record.method : "HTTP";
  Span span = {.trace_id = trace.trace_id,
               .span_id = trace.span_id,
               .parent_span_id = trace.caller_span_id,
               .has_remote_parent = trace.caller_span_id != SpanId{},
               .trace_state = trace.trace_state,
               .name = record.has_route() ? method + " " + record.route : method,
               .kind = SpanKind::kServer,
               .begin = after(request.ended_at, -record.total_ms),
               .end = request.ended_at,
               .attributes = {},
               .is_error = record.status >= 500 || record.stream_failed};
  add_request(record, server, Attributes(span.attributes));
  if (record.generation) append_stages(*record.generation, span, spans);
  spans.push_back(std::move(span));
}

}  // namespace kvasir::server::observe
