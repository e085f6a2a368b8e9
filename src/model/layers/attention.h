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
  std::unique_ptr<backend::Matrix> wq, wo;
  std::unique_ptr<backend::Matrix> wk;  // null: the layer attends to what another one has stored
  std::unique_ptr<backend::Matrix> wv;  // null with wk: values are the keys before norm and RoPE
  std::vector<float> bq, bk, bv, bo;    // [q_size], [kv_size], [kv_size], [hidden]
  std::vector<float> q_norm, k_norm;    // [head_dim], or of whole rows
  std::vector<float> v_norm;            // [head_dim]
  std::vector<float> sinks;             // [num_heads]
  bool norms_rows = false;
  bool is_behind_kv = false;  // no later layer stores keys and values, so rows without logits may go
  KvPlace kv;
  std::int32_t rope = 0;  // RopeKinds::add
};

struct AttentionParts {
  bool qkv_bias = false;  // must be there; else biases are taken where the file has them
  QkNorm qk_norm = QkNorm::kNone;
  bool norms_v = false;   // RMS without a weight
  bool v_may_be_k = false;  // where the file has no attn_v
  bool sinks = false;
};

// Tensors blk.N.attn_*: Q, K and V as three, or as one with these rows in turn; Q alone where the layer attends
// to another one's keys and values. Sizes are those of the layer's group.
Result<Attention> load_attention(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                                 AttentionParts parts = {});

// Attention over the rows ws.h into attention_rows(), without the output projection; stores keys and values. Once
// the last layer's are stored only the rows that want logits are left, in ws.x and the inputs of ws.per_layer
// too: false when there are none, and then nothing is left to do.
bool run_attention(const LayerRun& run, const Attention& attention);

// That of the workspace's activations that run_attention() writes.
const backend::Activation& attention_rows(const LayerRun& run, const Attention& attention);

// The output projection, of attention_rows(); where it goes is for the caller to say.
backend::MatmulOp attention_output(const Attention& attention);

}  // namespace kvasir::model
