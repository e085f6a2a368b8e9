#include "model/layers/attention.h"

#include <fmt/format.h>

#include <string>

namespace kvasir::model {
namespace {

const float* data_or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

// Names and sizes of one layer's tensors.
struct Source {
  WeightLoader& loader;
  const ModelConfig& config;
  std::string prefix;  // "blk.N.attn_"
};

Status load_separate_qkv(const Source& from, bool needs_bias, Attention& attention) {
  auto& [loader, config, prefix] = from;
  struct Part {
    const char* name;
    std::int32_t size;
    std::unique_ptr<backend::Matrix>& weight;
    std::vector<float>& bias;
  };
  Part parts[] = {{"q", config.q_size(), attention.wq, attention.bq},
                  {"k", config.kv_size(), attention.wk, attention.bk},
                  {"v", config.kv_size(), attention.wv, attention.bv}};
  for (Part& part : parts) {
    KVASIR_TRY(part.weight, loader.matrix(prefix + part.name + ".weight", part.size, config.hidden_size));
    const std::string bias = prefix + part.name + ".bias";
    if (needs_bias || loader.has(bias)) {
      KVASIR_TRY(part.bias, loader.vector(bias, part.size));
    }
  }
  return {};
}

Status load_joint_qkv(const Source& from, bool needs_bias, Attention& attention) {
  auto& [loader, config, prefix] = from;
  const std::int32_t q = config.q_size(), kv = config.kv_size(), total = q + 2 * kv;
  const std::string weight = prefix + "qkv.weight", bias = prefix + "qkv.bias";
  KVASIR_TRY(attention.wq, loader.matrix_part(weight, 0, q, total, config.hidden_size));
  KVASIR_TRY(attention.wk, loader.matrix_part(weight, q, kv, total, config.hidden_size));
  KVASIR_TRY(attention.wv, loader.matrix_part(weight, q + kv, kv, total, config.hidden_size));
  if (!needs_bias && !loader.has(bias)) return {};
  KVASIR_TRY(const std::vector<float> all, loader.vector(bias, total));
  attention.bq.assign(all.begin(), all.begin() + q);
  attention.bk.assign(all.begin() + q, all.begin() + q + kv);
  attention.bv.assign(all.begin() + q + kv, all.end());
  return {};
}

Status load_qk_norms(const Source& from, QkNorm norm, Attention& attention) {
  auto& [loader, config, prefix] = from;
  if (norm == QkNorm::kNone) return {};
  attention.norms_rows = norm == QkNorm::kRows;
  KVASIR_TRY(attention.q_norm, loader.vector(prefix + "q_norm.weight",
                                             attention.norms_rows ? config.q_size() : config.head_dim));
  KVASIR_TRY(attention.k_norm, loader.vector(prefix + "k_norm.weight",
                                             attention.norms_rows ? config.kv_size() : config.head_dim));
  return {};
}

}  // namespace

Result<Attention> load_attention(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                                 AttentionParts parts) {
  const Source from = {loader, config, fmt::format("blk.{}.attn_", layer)};
  Attention attention;
  const bool is_joint = loader.has(from.prefix + "qkv.weight");
  KVASIR_CHECKED(is_joint ? load_joint_qkv(from, parts.qkv_bias, attention)
                          : load_separate_qkv(from, parts.qkv_bias, attention));
  KVASIR_TRY(attention.wo, loader.matrix(from.prefix + "output.weight", config.hidden_size, config.q_size()));
  KVASIR_TRY(attention.bo, loader.optional_vector(from.prefix + "output.bias", config.hidden_size));
  KVASIR_CHECKED(load_qk_norms(from, parts.qk_norm, attention));
  if (parts.sinks) {
    KVASIR_TRY(attention.sinks, loader.vector(from.prefix + "sinks.weight", config.num_heads));
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
                     .norms_rows = attention.norms_rows,
                     .norm_eps = config.norm_eps,
                     .temperature_scale = config.temperature_scale,
                     .temperature_length = config.temperature_length_tokens,
                     .rope_index = attention.rope,
                     .group = attention.kv.group,
                     .layer_in_group = attention.kv.layer_in_group});
  const backend::AttendOp attend = {.q = ws.q,
                                    .group = attention.kv.group,
                                    .layer_in_group = attention.kv.layer_in_group,
                                    .scale = config.attention_scale,
                                    .softcap = config.attention_softcap,
                                    .sinks = data_or_null(attention.sinks)};
  if (run.is_last()) return op.attend_wanted_rows(attend, ws.x, *ws.attn) > 0;
  op.attend(attend, *ws.attn);
  return true;
}

backend::MatmulOp attention_output(const Attention& attention) {
  return {.weight = attention.wo.get(), .bias = data_or_null(attention.bo)};
}

}  // namespace kvasir::model
