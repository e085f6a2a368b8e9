// The engine's numbers as one tenant may see them.
#pragma once

#include "kvasir/engine.h"
#include "server/auth/tenant.h"
#include "server/metrics.h"

namespace kvasir::server {

// All of them for operators. Others see tokens, and those that the prefix cache found, of their own requests
// alone, when they have ended: how long another's text is, and whether somebody asked it before, is not for
// them.
EngineStats visible_stats(EngineStats stats, const ServerMetrics& metrics, const Tenant& tenant);

}  // namespace kvasir::server
