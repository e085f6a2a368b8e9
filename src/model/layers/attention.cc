#include "model/layers/attention.h"

namespace kvasir::model {

Result<AttentionWeights> load_attention(WeightLoader& loader, const std::string& prefix,
                                        const ModelConfig& config, AttentionParts parts) {
  AttentionWeights w;
  KVASIR_TRY(w.norm, loader.vector(prefix + "attn_norm.weight", config.hidden_size));
  KVASIR_TRY(w.wq, loader.matrix(prefix + "attn_q.weight", config.q_size(), config.hidden_size));
  KVASIR_TRY(w.wk, loader.matrix(prefix + "attn_k.weight", config.kv_size(), config.hidden_size));
  KVASIR_TRY(w.wv, loader.matrix(prefix + "attn_v.weight", config.kv_size(), config.hidden_size));
  KVASIR_TRY(w.wo, loader.matrix(prefix + "attn_output.weight", config.hidden_size, config.q_size()));
  if (parts.qkv_bias) {
    KVASIR_TRY(w.bq, loader.vector(prefix + "attn_q.bias", config.q_size()));
    KVASIR_TRY(w.bk, loader.vector(prefix + "attn_k.bias", config.kv_size()));
    KVASIR_TRY(w.bv, loader.vector(prefix + "attn_v.bias", config.kv_size()));
  }
  if (parts.qk_norm) {
    KVASIR_TRY(w.q_norm, loader.vector(prefix + "attn_q_norm.weight", config.head_dim));
    KVASIR_TRY(w.k_norm, loader.vector(prefix + "attn_k_norm.weight", config.head_dim));
  }
  return w;
}

}  // namespace kvasir::model
