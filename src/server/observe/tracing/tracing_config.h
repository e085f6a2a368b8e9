// The operator's settings of traces, by flags and by OpenTelemetry's own variables.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/result.h"
#include "server/http/message.h"
#include "server/observe/tracing/backoff.h"
#include "server/observe/tracing/collector_url.h"
#include "server/observe/tracing/pending_requests.h"
#include "server/observe/tracing/sampler.h"

namespace kvasir::server::observe {

struct TracingConfig {
  CollectorUrl url;
  std::vector<http::Header> headers;  // of each post, such as a key
  std::string ca_file;                // PEM, of those to trust with https; empty: whom the system trusts
  Sampler sampler;
  std::vector<std::pair<std::string, std::string>> resource;  // attributes of this server
  std::string version;                                        // of this program
  std::chrono::milliseconds timeout{10'000};                  // of one post
  PendingRequests::Limits pending;
  Backoff::Limits backoff;
};

struct TracingFlags {
  std::string endpoint;         // a base URL; empty: not given
  std::optional<double> share;  // of the traces that begin here, 0 to 1
};

// The value of a variable; nothing where it is unset or empty.
using Variables = std::function<std::optional<std::string>(const char* name)>;

// Nothing unless a flag, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT says where traces
// go; flags go before variables, and variables of traces before those of all signals. OTEL_SDK_DISABLED and
// OTEL_TRACES_EXPORTER=none turn off what no flag asks for. `warn` takes a line for each variable that is not
// understood and therefore left out, as OpenTelemetry wants it.
// Errors: kUsage, for a URL, and for headers, without which the collector would refuse everything.
Result<std::optional<TracingConfig>> make_tracing_config(const TracingFlags& flags,
                                                         const Variables& variables,
                                                         const std::function<void(std::string_view)>& warn);

}  // namespace kvasir::server::observe
