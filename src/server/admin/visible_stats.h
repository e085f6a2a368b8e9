// The engine's numbers as one tenant may see them.
#pragma once

#include "kvasir/engine.h"
#include "server/auth/tenant.h"
#include "server/metrics.h"

namespace kvasir::server {

// All of them for operators. Others see requests that were answered, their tokens, and those that the prefix
// cache found, of their own alone, when they have ended: how long another's text is, and whether somebody
// asked it before, is not for them. How many run, wait, were refused or cancelled is everybody's.
EngineStats visible_stats(EngineStats stats, const ServerMetrics& metrics, const Tenant& tenant);

struct MeanTimes {
  double first_token_s = 0.0;
  double request_s = 0.0;  // until the answer had ended
};

// Of the same requests; 0 when there were none.
MeanTimes visible_times(const ServerMetrics& metrics, const Tenant& tenant);

}  // namespace kvasir::server
