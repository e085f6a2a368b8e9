#include "model/layers/attention.h"

#include <fmt/format.h>

#include <array>
#include <span>
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
  const AttentionParts& parts;
  std::string prefix;  // "blk.N.attn_"
  bool stores_kv = true;
  std::int32_t head_dim = 0, q_size = 0, kv_size = 0;
};

Result<std::vector<float>> load_bias(const Source& from, const std::string& name, std::int32_t size) {
  return from.parts.qkv_bias ? from.loader.vector(name, size) : from.loader.optional_vector(name, size);
}

Status load_separate_qkv(const Source& from, Attention& attention) {
  struct Part {
    const char* name;
    std::int32_t size;
    bool is_there;
    std::unique_ptr<backend::Matrix>& weight;
    std::vector<float>& bias;
  };
  const bool has_v = !from.parts.v_may_be_k || from.loader.has(from.prefix + "v.weight");
  Part parts[] = {{"q", from.q_size, true, attention.wq, attention.bq},
                  {"k", from.kv_size, from.stores_kv, attention.wk, attention.bk},
                  {"v", from.kv_size, from.stores_kv && has_v, attention.wv, attention.bv}};
  for (Part& part : parts) {
    if (!part.is_there) continue;
    KVASIR_TRY(part.weight,
               from.loader.matrix(from.prefix + part.name + ".weight", part.size, from.config.hidden_size));
    const std::string bias = from.prefix + part.name + ".bias";
    KVASIR_TRY(part.bias, load_bias(from, bias, part.size));
  }
  return {};
}

Status load_joint_qkv(const Source& from, Attention& attention) {
  const std::int64_t hidden = from.config.hidden_size;
  const std::int32_t q = from.q_size, kv = from.kv_size, total = q + 2 * kv;
  const std::string weight = from.prefix + "qkv.weight", bias = from.prefix + "qkv.bias";
  KVASIR_TRY(attention.wq, from.loader.matrix_part(weight, 0, q, total, hidden));
  KVASIR_TRY(attention.wk, from.loader.matrix_part(weight, q, kv, total, hidden));
  KVASIR_TRY(attention.wv, from.loader.matrix_part(weight, q + kv, kv, total, hidden));
  KVASIR_TRY(const std::vector<float> all, load_bias(from, bias, total));
  if (all.empty()) return {};
  attention.bq.assign(all.begin(), all.begin() + q);
  attention.bk.assign(all.begin() + q, all.begin() + q + kv);
  attention.bv.assign(all.begin() + q + kv, all.end());
  return {};
}

Status load_norms(const Source& from, Attention& attention) {
  const QkNorm norm = from.parts.qk_norm;
  attention.norms_rows = norm == QkNorm::kRows;
  if (norm != QkNorm::kNone) {
    KVASIR_TRY(attention.q_norm, from.loader.vector(from.prefix + "q_norm.weight",
                                                    attention.norms_rows ? from.q_size : from.head_dim));
  }
  if (norm != QkNorm::kNone && from.stores_kv) {
    KVASIR_TRY(attention.k_norm, from.loader.vector(from.prefix + "k_norm.weight",
                                                    attention.norms_rows ? from.kv_size : from.head_dim));
  }
  if (from.parts.norms_v) attention.v_norm.assign(static_cast<std::size_t>(from.head_dim), 1.0f);
  return {};
}

// Queries, keys and values of the rows ws.h, turned; the keys and values are stored.
void make_qkv(const LayerRun& run, const Attention& attention, backend::Rows q) {
  auto& [op, ws, config, layer] = run;
  std::array<backend::MatmulOp, 3> products;
  std::size_t count = 0;
  products[count++] = {.weight = attention.wq.get(), .bias = data_or_null(attention.bq), .out = q};
  backend::RopeAndStoreOp rope{.q = q,
                               .q_norm = data_or_null(attention.q_norm),
                               .k_norm = data_or_null(attention.k_norm),
                               .v_norm = data_or_null(attention.v_norm),
                               .norms_rows = attention.norms_rows,
                               .norm_eps = config.norm_eps,
                               .temperature_scale = config.temperature_scale,
                               .temperature_length = config.temperature_length_tokens,
                               .rope_index = attention.rope,
                               .group = attention.kv.group,
                               .layer_in_group = attention.kv.layer_in_group};
  if (attention.wk != nullptr) {
    rope.k = columns(ws.k, attention.wk->num_rows);
    rope.v = columns(ws.v, attention.wk->num_rows);
    rope.is_v_k = attention.wv == nullptr;
    products[count++] = {.weight = attention.wk.get(), .bias = data_or_null(attention.bk), .out = rope.k};
  }
  if (attention.wv != nullptr) {
    products[count++] = {.weight = attention.wv.get(), .bias = data_or_null(attention.bv), .out = rope.v};
  }
  op.matmul(*ws.h, std::span(products).first(count));
  op.rope_and_store(rope);
}

backend::Activation& written_rows(const LayerRun& run, const Attention& attention) {
  return *run.ws.attn.at(attention.wo->row_length);
}

}  // namespace

Result<Attention> load_attention(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                                 AttentionParts parts) {
  const LayerGroup& group = config.group_of(layer);
  const Source from = {.loader = loader,
                       .config = config,
                       .parts = parts,
                       .prefix = fmt::format("blk.{}.attn_", layer),
                       .stores_kv = config.stores_kv(layer),
                       .head_dim = config.head_dim_of(group),
                       .q_size = config.q_size_of(group),
                       .kv_size = config.kv_size_of(group)};
  Attention attention;
  const bool is_joint = from.stores_kv && loader.has(from.prefix + "qkv.weight");
  KVASIR_CHECKED(is_joint ? load_joint_qkv(from, attention) : load_separate_qkv(from, attention));
  KVASIR_TRY(attention.wo, loader.matrix(from.prefix + "output.weight", config.hidden_size, from.q_size));
  KVASIR_TRY(attention.bo, loader.optional_vector(from.prefix + "output.bias", config.hidden_size));
  KVASIR_CHECKED(load_norms(from, attention));
  if (parts.sinks) {
    KVASIR_TRY(attention.sinks, loader.vector(from.prefix + "sinks.weight", config.num_heads));
  }
  attention.kv = config.kv_place(layer);
  attention.is_behind_kv = layer >= config.last_kv_layer();
  return attention;
}

bool run_attention(const LayerRun& run, const Attention& attention) {
  auto& [op, ws, config, layer] = run;
  const backend::Rows q = columns(ws.q, attention.wq->num_rows);
  make_qkv(run, attention, q);
  const backend::AttendOp attend = {.q = q,
                                    .group = attention.kv.group,
                                    .layer_in_group = attention.kv.layer_in_group,
                                    .scale = config.attention_scale,
                                    .softcap = config.attention_softcap,
                                    .sinks = data_or_null(attention.sinks)};
  backend::Activation& out = written_rows(run, attention);
  if (!attention.is_behind_kv) {
    op.attend(attend, out);
    return true;
  }
  std::array<backend::Rows, 2> moved = {ws.x};
  if (ws.per_layer) moved[1] = ws.per_layer->inputs;
  const std::size_t num_moved = ws.per_layer ? 2 : 1;
  return op.attend_wanted_rows(attend, std::span(moved).first(num_moved), run.is_last(), out) > 0;
}

const backend::Activation& attention_rows(const LayerRun& run, const Attention& attention) {
  return written_rows(run, attention);
}

backend::MatmulOp attention_output(const Attention& attention) {
  return {.weight = attention.wo.get(), .bias = data_or_null(attention.bo)};
}

}  // namespace kvasir::model
