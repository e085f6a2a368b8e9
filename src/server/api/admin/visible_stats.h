// The engine's numbers as one tenant may see them.
#pragma once

#include "kvasir/engine.h"
#include "server/api/api_context.h"
#include "server/auth/tenant.h"
#include "server/observe/metrics.h"

namespace kvasir::server::api {

// All of them for operators. For others answered requests, their tokens, and those that the prefix cache
// found, are of their own alone, when they have ended; how many choices run, wait and were refused is
// everybody's, and all else is 0: bytes, steps and times tell of somebody who is alone how long its text is,
// and whether it was asked before.
EngineStats visible_stats(const EngineStats& stats, const observe::ServerMetrics& metrics,
                          const auth::Tenant& tenant);

// Means over the requests of all models; 0 where there were none.
struct VisibleMeans {
  double first_token_s = 0.0;
  double request_s = 0.0;               // until the answer had ended
  double generated_tokens_per_s = 0.0;  // for operators while steps run, for others while they get answers
  double batch = 0.0;                   // sequences in a step; 0 for others
};

VisibleMeans visible_means(const ApiContext& context, const EngineStats& stats, const auth::Tenant& tenant);

// The counts of all models' engines, added. Steps of the models come one after the other, so that their times
// add up; of waiting times it is the longest.
EngineStats total_stats(const ApiContext& context);

}  // namespace kvasir::server::api
