// The spans of a request that is over: its own, and one for each stage that the engine worked in.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "server/observe/access_log.h"
#include "server/observe/tracing/span.h"

namespace kvasir::server::observe {

// Never what a request or its answer says.
struct TracedRequest {
  AccessRecord record;  // with its trace
  std::chrono::system_clock::time_point ended_at;
};

// The facts that all requests of a server have in common.
struct TracedServer {
  std::string model_name;
  bool is_https = false;
};

// How many append_request_spans() appends.
std::size_t num_request_spans(const AccessRecord& record);

// Attributes as OpenTelemetry's semantic conventions name them for HTTP servers (1.41) and generative AI (in
// development), and as kvasir.* what they have no name for. Times of stages are those of RequestCost.
// Requires: request.record.trace.
void append_request_spans(const TracedRequest& request, const TracedServer& server, std::vector<Span>& spans);

}  // namespace kvasir::server::observe
