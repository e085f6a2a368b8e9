// The Prometheus text format, version 0.0.4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kvasir/engine.h"
#include "server/metrics.h"
#include "server/tracing/export_counts.h"

namespace kvasir::server {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// All names begin with kvasir_. What single tenants did is there for `only_tenant` alone, if it is given;
// what became of spans, unless `traces` is null.
std::string metrics_text(const EngineStats& engine, const ServerMetrics& server, const ExportCounts* traces,
                         std::string_view model_name, std::optional<std::string_view> only_tenant = {});

}  // namespace kvasir::server
