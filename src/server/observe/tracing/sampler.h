// Which requests are traced.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/observe/tracing/trace_context.h"

namespace kvasir::server::observe {

// Decides before a trace's first span, by its id alone, so that every server with the same share decides
// alike.
//
// Thread safety: immutable.
class Sampler {
 public:
  // All traces that begin here, and those that the caller samples.
  Sampler() = default;

  // As OpenTelemetry names them: always_on, always_off, traceidratio, and each with parentbased_ before it.
  // Nothing for other names. `share` of traceidratio is 0 to 1.
  static std::optional<Sampler> named(std::string_view name, double share);
  // `share` of the traces that begin here, and those that the caller samples.
  static Sampler of_new_traces(double share) { return {share, /*follows_caller=*/true}; }

  // `caller`: what came with the request, null where it begins a trace.
  bool samples(const TraceId& id, const TraceContext* caller) const;

 private:
  Sampler(double share, bool follows_caller) : share_(share), follows_caller_(follows_caller) {}

  double share_ = 1.0;
  bool follows_caller_ = true;
};

}  // namespace kvasir::server::observe
