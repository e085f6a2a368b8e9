// The server's numbers under the names that vLLM gives its own, for dashboards and endpoint pickers.
#pragma once

#include <string>
#include <string_view>

#include "kvasir/engine.h"
#include "server/observe/metrics.h"

namespace kvasir::server::observe {

// Those that mean the same here; the rest of vLLM's are left out. Appended to `text`.
void append_vllm_metrics(const EngineStats& engine, const ServerMetrics& server, std::string_view model_name,
                         bool is_for_operator, std::string& text);

}  // namespace kvasir::server::observe
