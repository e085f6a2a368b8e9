// Which trace a request belongs to, as the W3C's headers say it. Source: W3C Trace Context, 3.2 and 3.3.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace kvasir::server::observe {

// All zeros: none.
using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

struct TraceContext {
  TraceId trace_id{};
  SpanId span_id{};  // of the caller's span
  bool is_sampled = false;
};

// Random, and never zero. Thread safety: any thread.
TraceId new_trace_id();
SpanId new_span_id();

// "4bf92f35...", lower case.
std::string hex(std::span<const std::uint8_t> id);

// Nothing unless the header is valid: a later version than 00 may go on behind what is known of it.
std::optional<TraceContext> parse_traceparent(std::string_view header);
// The context in the request's Traceparent.
std::optional<TraceContext> trace_context_of(const http::Request& request);

// The state that tracing systems pass along with a trace: all Tracestate headers as one. Empty where one is
// malformed, or all together are longer than 512 bytes.
std::string trace_state_of(const http::Request& request);

}  // namespace kvasir::server::observe
