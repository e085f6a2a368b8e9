// A loaded model in the figures that users ask for.
#pragma once

#include <cstdint>

#include "io/weight_source.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/engine.h"
#include "model/config.h"
#include "model/model.h"

namespace kvasir {

// Elements of a tensor that a token is multiplied by: of the experts' matrices those of the experts that it uses.
std::int64_t num_active(const TensorView& tensor, const backend::RoutingRule& rule);

// Describes the header alone: nothing of packed weights, of KV or of memory.
ModelInfo describe_header(const io::WeightSource& source, const model::ModelConfig& config);

// `source` is the file that the model came from, `kv` the cache it runs with.
ModelInfo describe(const io::WeightSource& source, const model::Model& model, const kv::KvCacheConfig& kv,
                   std::int32_t max_model_len_tokens);

// Adds a notice where memory holds less than the model was trained for. The model's own length may be far beyond any
// machine; one that was asked for is kept, or refused.
void note_short_context(const EngineConfig& config, ModelInfo& info);

}  // namespace kvasir
