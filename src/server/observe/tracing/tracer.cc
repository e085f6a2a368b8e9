#include "server/observe/tracing/tracer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/utf8.h"

namespace kvasir::server::observe {
namespace {

constexpr std::size_t kMaxTextBytes = 256;

bool is_probe_or_scrape(const http::Request& request) {
  const std::string_view path = request.path;
  return path == "/health" || path.starts_with("/health/") || path == "/ping" || path == "/metrics";
}

// The operator's attributes go before those that are known here.
std::vector<Attribute> resource_of(const TracingConfig& config) {
  std::vector<Attribute> resource;
  for (const auto& [name, value] : config.resource) resource.push_back({name, value});
  const auto add = [&resource](std::string_view name, Attribute::Value value) {
    const auto is_known = [name](const Attribute& attribute) { return attribute.name == name; };
    if (std::ranges::none_of(resource, is_known)) resource.push_back({std::string(name), std::move(value)});
  };
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) add("host.name", to_valid_utf8(host));
  add("process.pid", static_cast<std::int64_t>(getpid()));
  add("service.instance.id", hex(new_trace_id()));
  if (!config.version.empty()) add("service.version", config.version);
  add("telemetry.sdk.name", std::string("kvasir"));
  add("telemetry.sdk.language", std::string("cpp"));
  if (!config.version.empty()) add("telemetry.sdk.version", config.version);
  return resource;
}

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::create(const TracingConfig& config, TracedServer server,
                                               SpanExporter::Warn warn) {
  KVASIR_TRY(auto client, CollectorClient::create({.url = config.url,
                                                   .headers = config.headers,
                                                   .user_agent = fmt::format("kvasir/{}", config.version),
                                                   .ca_file = config.ca_file}));
  SpanExporter::Options options = {.resource = resource_of(config),
                                   .server = std::move(server),
                                   .version = config.version,
                                   .shown_url = config.url.shown(),
                                   .timeout = config.timeout,
                                   .pending = config.pending,
                                   .backoff = config.backoff,
                                   .warn = std::move(warn)};
  return std::unique_ptr<Tracer>(new Tracer(config.sampler, std::move(options), std::move(client)));
}

std::optional<RequestTrace> Tracer::begin(const http::Request& request,
                                          const std::optional<TraceContext>& caller) const {
  if (!caller && is_probe_or_scrape(request)) return {};
  const TraceId id = caller ? caller->trace_id : new_trace_id();
  if (!sampler_.samples(id, caller ? &*caller : nullptr)) return {};
  RequestTrace trace{.trace_id = id, .span_id = new_span_id(), .trace_state = {}, .user_agent = {}};
  if (caller) {
    trace.caller_span_id = caller->span_id;
    trace.trace_state = trace_state_of(request);
  }
  if (const std::string* agent = request.header("User-Agent"))
    trace.user_agent = agent->substr(0, kMaxTextBytes);
  return trace;
}

void Tracer::end(const AccessRecord& record) {
  if (!record.trace) return;
  TracedRequest request{record, std::chrono::system_clock::now()};
  // Each waiting record is small: an id and a tenant's name are bounded already.
  if (request.record.path.size() > kMaxTextBytes) {
    request.record.path.resize(kMaxTextBytes);
    request.record.path.shrink_to_fit();
  }
  request.record.method.resize(std::min(request.record.method.size(), kMaxTextBytes));
  exporter_.push(std::move(request));
}

}  // namespace kvasir::server::observe
