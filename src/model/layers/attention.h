// The weights of one attention sub-layer, as the decoders here name them in their files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace kvasir::model {

// Empty vectors are parts that the architecture does not have.
struct AttentionWeights {
  std::vector<float> norm;  // [hidden]
  std::unique_ptr<backend::Matrix> wq, wk, wv, wo;
  std::vector<float> bq, bk, bv;      // [q_size], [kv_size], [kv_size]
  std::vector<float> q_norm, k_norm;  // [head_dim]
};

struct AttentionParts {
  bool qkv_bias = false;
  bool qk_norm = false;
};

Result<AttentionWeights> load_attention(WeightLoader& loader, const std::string& prefix,
                                        const ModelConfig& config, AttentionParts parts = {});

}  // namespace kvasir::model
