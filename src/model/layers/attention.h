// Multi-head attention with grouped queries: its weights, as the files name them, and its run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/config.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

// RMS norms of queries and keys before they turn.
enum class QkNorm : std::uint8_t { kNone, kHeads, kRows };

// One layer's. Empty vectors are parts that the architecture or the file does not have.
struct Attention {
  std::unique_ptr<backend::Matrix> wq, wk, wv, wo;
  std::vector<float> bq, bk, bv, bo;  // [q_size], [kv_size], [kv_size], [hidden]
  std::vector<float> q_norm, k_norm;  // [head_dim], or of whole rows
  std::vector<float> sinks;           // [num_heads]
  bool norms_rows = false;
  KvPlace kv;
  std::int32_t rope = 0;  // RopeKinds::add
};

struct AttentionParts {
  bool qkv_bias = false;  // must be there; else biases are taken where the file has them
  QkNorm qk_norm = QkNorm::kNone;
  bool sinks = false;
};

// Tensors blk.N.attn_*: Q, K and V as three, or as one with these rows in turn. The place of the keys and values
// is the layer's own.
Result<Attention> load_attention(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                                 AttentionParts parts = {});

// Attention over the rows ws.h into ws.attn, without the output projection; stores keys and values. In the
// last layer only the rows that want logits are left afterwards, in ws.x too: false when there are none, and
// then nothing is left to do.
bool run_attention(const LayerRun& run, const Attention& attention);

// The output projection, of ws.attn; where it goes is for the caller to say.
backend::MatmulOp attention_output(const Attention& attention);

}  // namespace kvasir::model
