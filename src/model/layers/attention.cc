#include "model/layers/attention.h"

#include <fmt/format.h>

#include <string>

namespace kvasir::model {
namespace {

const float* data_or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

Result<Attention> load_attention(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                                 AttentionParts parts) {
  const std::string prefix = fmt::format("blk.{}.attn_", layer);
  Attention attention;
  KVASIR_TRY(attention.norm, loader.vector(prefix + "norm.weight", config.hidden_size));
  KVASIR_TRY(attention.wq, loader.matrix(prefix + "q.weight", config.q_size(), config.hidden_size));
  KVASIR_TRY(attention.wk, loader.matrix(prefix + "k.weight", config.kv_size(), config.hidden_size));
  KVASIR_TRY(attention.wv, loader.matrix(prefix + "v.weight", config.kv_size(), config.hidden_size));
  KVASIR_TRY(attention.wo, loader.matrix(prefix + "output.weight", config.hidden_size, config.q_size()));
  if (parts.qkv_bias) {
    KVASIR_TRY(attention.bq, loader.vector(prefix + "q.bias", config.q_size()));
    KVASIR_TRY(attention.bk, loader.vector(prefix + "k.bias", config.kv_size()));
    KVASIR_TRY(attention.bv, loader.vector(prefix + "v.bias", config.kv_size()));
  }
  if (parts.qk_norm) {
    KVASIR_TRY(attention.q_norm, loader.vector(prefix + "q_norm.weight", config.head_dim));
    KVASIR_TRY(attention.k_norm, loader.vector(prefix + "k_norm.weight", config.head_dim));
  }
  attention.kv = config.kv_place(layer);
  return attention;
}

bool run_attention(const LayerRun& run, const Attention& attention) {
  auto& [op, ws, config, layer] = run;
  const backend::MatmulOp qkv[] = {
      {.weight = attention.wq.get(), .bias = data_or_null(attention.bq), .out = ws.q},
      {.weight = attention.wk.get(), .bias = data_or_null(attention.bk), .out = ws.k},
      {.weight = attention.wv.get(), .bias = data_or_null(attention.bv), .out = ws.v},
  };
  op.matmul(*ws.h, qkv);
  op.rope_and_store({.q = ws.q,
                     .k = ws.k,
                     .v = ws.v,
                     .q_norm = data_or_null(attention.q_norm),
                     .k_norm = data_or_null(attention.k_norm),
                     .norm_eps = config.rms_norm_eps,
                     .rope_index = attention.rope,
                     .group = attention.kv.group,
                     .layer_in_group = attention.kv.layer_in_group});
  const backend::AttendOp attend = {.q = ws.q,
                                    .group = attention.kv.group,
                                    .layer_in_group = attention.kv.layer_in_group,
                                    .scale = config.attention_scale};
  if (run.is_last()) return op.attend_wanted_rows(attend, ws.x, *ws.attn) > 0;
  op.attend(attend, *ws.attn);
  return true;
}

}  // namespace kvasir::model
