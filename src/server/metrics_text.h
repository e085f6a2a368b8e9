// The Prometheus text format, version 0.0.4.
#pragma once

#include <string>
#include <string_view>

#include "kvasir/engine.h"
#include "server/metrics.h"

namespace kvasir::server {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// All names begin with kvasir_.
std::string metrics_text(const EngineStats& engine, const ServerMetrics& server, std::string_view model_name);

}  // namespace kvasir::server
