// The server's numbers under the names that vLLM gives its own, for dashboards and endpoint pickers.
#pragma once

#include <span>
#include <string>

#include "server/observe/metrics_text.h"

namespace kvasir::server::observe {

// Those that mean the same here; the rest of vLLM's are left out. Appended to `text`.
void append_vllm_metrics(std::span<const ModelMetrics> models, bool is_for_operator, std::string& text);

}  // namespace kvasir::server::observe
