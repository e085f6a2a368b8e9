// One stretch of time in a trace.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/observe/tracing/trace_context.h"

namespace kvasir::server::observe {

struct Attribute {
  using Value = std::variant<std::string, bool, std::int64_t, double, std::vector<std::string>>;

  std::string name;
  Value value;  // text is UTF-8
};

enum class SpanKind : std::uint8_t { kInternal = 1, kServer = 2 };  // as OTLP numbers them

struct Span {
  using Time = std::chrono::system_clock::time_point;

  TraceId trace_id{};
  SpanId span_id{};
  SpanId parent_span_id{};         // zero: none
  bool has_remote_parent = false;  // in another process
  std::string trace_state;
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  Time begin, end;
  std::vector<Attribute> attributes;
  bool is_error = false;
};

}  // namespace kvasir::server::observe
