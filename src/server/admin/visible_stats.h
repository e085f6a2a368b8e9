// The engine's numbers as one tenant may see them.
#pragma once

#include "kvasir/engine.h"
#include "server/auth/tenant.h"
#include "server/metrics.h"

namespace kvasir::server {

// All of them for operators. Others are told of what the prefix cache found only what it found for their own
// requests that ended: whose prompt was found says what somebody asked before.
EngineStats visible_stats(EngineStats stats, const ServerMetrics& metrics, const Tenant& tenant);

}  // namespace kvasir::server
