// The span of a request that is traced, as long as the request is not over.
#pragma once

#include <string>

#include "server/observe/tracing/trace_context.h"

namespace kvasir::server::observe {

struct RequestTrace {
  TraceId trace_id{};
  SpanId span_id{};
  SpanId caller_span_id{};  // zero: the trace begins here
  std::string trace_state;
  std::string user_agent;
};

}  // namespace kvasir::server::observe
