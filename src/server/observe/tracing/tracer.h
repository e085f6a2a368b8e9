// Decides which requests are traced, and hands their spans on.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "kvasir/result.h"
#include "server/http/message.h"
#include "server/observe/access_log.h"
#include "server/observe/tracing/sampler.h"
#include "server/observe/tracing/span_exporter.h"
#include "server/observe/tracing/tracing_config.h"

namespace kvasir::server::observe {

// Probes and scrapes come all the time and say nothing, so no trace begins with one; one that comes with a
// trace is part of it.
//
// Thread safety: begin(), end() and counts() from any thread, finish() from one.
class Tracer {
 public:
  // Error: kBadFile.
  static Result<std::unique_ptr<Tracer>> create(const TracingConfig& config, TracedServer server,
                                                SpanExporter::Warn warn);

  // Nothing: the request is not traced. `caller`: what came with it.
  std::optional<RequestTrace> begin(const http::Request& request,
                                    const std::optional<TraceContext>& caller) const;
  // The request is over, just now. Without a trace nothing happens.
  void end(const AccessRecord& record);
  // Sends what waits, for at most so long.
  void finish(std::chrono::milliseconds time) { exporter_.finish(time); }
  const ExportCounts& counts() const { return exporter_.counts(); }

 private:
  Tracer(const Sampler& sampler, SpanExporter::Options options, std::unique_ptr<CollectorClient> client)
      : sampler_(sampler), exporter_(std::move(options), std::move(client)) {}

  const Sampler sampler_;
  SpanExporter exporter_;
};

}  // namespace kvasir::server::observe
