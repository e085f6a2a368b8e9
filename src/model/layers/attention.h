// Multi-head attention with grouped queries: its weights, as the files name them, and its run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/config.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

// One layer's. Empty vectors are parts that the architecture does not have.
struct Attention {
  std::vector<float> norm;  // [hidden]
  std::unique_ptr<backend::Matrix> wq, wk, wv, wo;
  std::vector<float> bq, bk, bv;      // [q_size], [kv_size], [kv_size]
  std::vector<float> q_norm, k_norm;  // [head_dim]
  KvPlace kv;
  std::int32_t rope = 0;  // RopeKinds::add
};

struct AttentionParts {
  bool qkv_bias = false;
  bool qk_norm = false;
};

// Tensors blk.N.attn_*. The place of the keys and values is the layer's own.
Result<Attention> load_attention(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                                 AttentionParts parts = {});

// Attention over the rows ws.h into ws.attn, without the output projection; stores keys and values. In the
// last layer only the rows that want logits are left afterwards, in ws.x too: false when there are none, and
// then nothing is left to do.
bool run_attention(const LayerRun& run, const Attention& attention);

}  // namespace kvasir::model
