// Spans as OTLP sends them, in protobuf: every receiver takes that, and some no JSON.
// Source: opentelemetry-proto 1.9, trace.proto and trace_service.proto.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/observe/tracing/span.h"

namespace kvasir::server::observe {

inline constexpr std::string_view kOtlpContentType = "application/x-protobuf";

// An ExportTraceServiceRequest. `resource` says whose spans they are; `version` is this program's.
std::string export_request(const std::vector<Attribute>& resource, std::string_view version,
                           std::span<const Span> spans);

// The part of an ExportTraceServiceResponse about spans that the receiver did not take.
struct PartialSuccess {
  std::int64_t num_rejected_spans = 0;
  std::string message;
};
// All was taken where the bytes are no such response.
PartialSuccess parse_export_response(std::string_view body);

// The message of a google.rpc.Status, which refusals have for a body; empty where they have not.
std::string parse_refusal(std::string_view body);

}  // namespace kvasir::server::observe
