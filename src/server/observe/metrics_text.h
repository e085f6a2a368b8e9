// The Prometheus text format, version 0.0.4.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/engine.h"
#include "server/observe/dropped_lines.h"
#include "server/observe/metrics.h"
#include "server/observe/tracing/export_counts.h"

namespace kvasir::server::observe {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

struct ProcessState {
  bool draining = false;
  std::int64_t memory_budget_bytes = 0;  // 0: nobody said
  std::int64_t request_memory_bytes = 0;
  std::int64_t request_memory_limit_bytes = 0;  // 0: any
  const std::vector<DroppedLines>& logs;
  const ExportCounts* traces = nullptr;         // what became of spans; null where there are none
};

// The engine of one model, and how long its answers took.
struct ModelMetrics {
  std::string name;
  EngineStats engine;
  const ModelTimes& times;
};

// All names begin with kvasir_. What is of a model has its name as a label. With `only_tenant` there is what that one did and how many requests run and
// wait, of what visible_stats() left; without, all of everybody's.
std::string metrics_text(std::span<const ModelMetrics> models, const ServerMetrics& server,
                         const ProcessState& process, std::optional<std::string_view> only_tenant = {});

}  // namespace kvasir::server::observe
