// The learner of a model's forecast while a server runs, as the engine sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kv/kv_cache_config.h"
#include "kv/policy/policy.h"
#include "kv/policy/served_forecast.h"
#include "kvasir/ids.h"
#include "kvasir/kv_learning_stats.h"

namespace kvasir::kv {

// Called on the engine's thread, stats() on any: an implementation must be quick and must not block.
class ForecastLearner {
 public:
  virtual ~ForecastLearner() = default;
  // A model is loaded whose cache is this one, before its first request. The same model may come again. False: it is another
  // model than the first, and nothing is learned of it.
  virtual bool begin(const KvCacheConfig& config, const std::string& model_path) = 0;
  // For new requests of the policy whose forecast is learned. Null: the cache's own forecast counts.
  virtual std::shared_ptr<const ServedForecast> served() const = 0;
  // The policy that looks on in the place of that request's, while all its KV stays as it is. Null: the request was not chosen.
  virtual std::shared_ptr<const KvPolicy> shadow(RequestId id) = 0;
  virtual void note_waiting(std::int64_t num_requests) = 0;
  virtual KvLearningStats stats() const = 0;
};

}  // namespace kvasir::kv
