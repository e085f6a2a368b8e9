// Metrics of answers that were scored again.
#pragma once

#include <span>
#include <string_view>

#include "kvasir/shadow_stats.h"
#include "server/observe/metrics_text.h"
#include "server/observe/prometheus_text.h"

namespace kvasir::server::observe {

// "serving" or "held_back".
std::string_view state_name(KvPolicyState state);

// By model, KV policy and quality. Nothing where no answer was scored.
void append_shadows(PrometheusText& out, std::span<const ModelMetrics> models);

}  // namespace kvasir::server::observe
