// Metrics of a forecast that is learned from requests.
#pragma once

#include <span>

#include "server/observe/metrics_text.h"
#include "server/observe/prometheus_text.h"

namespace kvasir::server::observe {

// By model. Nothing where nothing is learned.
void append_kv_learning(PrometheusText& out, std::span<const ModelMetrics> models);

}  // namespace kvasir::server::observe
