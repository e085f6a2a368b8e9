// The KV calibration that lies beside a model's file, applied to its cache.
#pragma once

#include <string>

#include "kv/kv_cache_manager.h"
#include "kvasir/result.h"

namespace kvasir {

// Sets the costs of formats and the weights of heads; without a calibration formats keep their usual costs,
// and heads have no weights. Error (kBadFile): it is another model's, or does not fit this one.
Status apply_kv_calibration(const std::string& model_path, kv::KvCacheConfig& kv);

}  // namespace kvasir
