// Gemma 4 (Gemma Team 2026), of every size: window layers between global ones whose heads are wider; RMS norms of
// values too; the last layers of small models have no keys and values of their own, and embeddings per layer; in
// models with experts these stand beside the dense network.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "model/arch/registry.h"
#include "model/decoder.h"
#include "model/layers/attention.h"
#include "model/layers/mlp.h"
#include "model/layers/moe.h"
#include "model/layers/norm.h"
#include "model/layers/per_layer_embedding.h"
#include "model/layers/residual.h"
#include "model/moe_config.h"

namespace kvasir::model {
namespace {

constexpr double kGemma4LocalRopeBase = 10000.0;
constexpr float kGemma4FinalSoftcap = 30.0f;
constexpr std::int64_t kMaxPerLayerSize = 1 << 16;
constexpr const char* kFreqFactors = "rope_freqs.weight";
constexpr backend::Gate kGemma4Activation = backend::Gate::kGeluTanh;

std::unexpected<Error> bad_key(const char* key, const std::string& problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("metadata gemma4.{}: {}", key, problem));
}

// A size of window layers; that of the others where the file does not say.
Result<std::int32_t> local_size(const io::Metadata& metadata, const char* key, std::int32_t of_others) {
  KVASIR_TRY(const auto size, metadata.find_int(std::string("gemma4.") + key, 2, backend::kMaxHeadDim));
  const auto value = static_cast<std::int32_t>(size.value_or(of_others));
  if (value % 2 == 0) return value;
  return bad_key(key, fmt::format("must be even, is {}", value));
}

Status set_local_heads(const io::Metadata& metadata, ModelConfig& config) {
  KVASIR_TRY(const std::int32_t width, local_size(metadata, "attention.key_length_swa", config.head_dim));
  KVASIR_TRY(const std::int32_t of_values, local_size(metadata, "attention.value_length_swa", width));
  if (of_values != width) {
    return bad_key("attention.value_length_swa", fmt::format("must equal key_length_swa {}, is {}", width, of_values));
  }
  for (LayerGroup& group : config.layer_groups) {
    if (group.window > 0) group.head_dim = width;
  }
  RopeConfig rope;
  KVASIR_TRY(rope.rotary_dim, local_size(metadata, "rope.dimension_count_swa", width));
  if (rope.rotary_dim > width) {
    return bad_key("rope.dimension_count_swa", fmt::format("must be at most {}, is {}", width, rope.rotary_dim));
  }
  KVASIR_TRY(const auto base, metadata.find_float("gemma4.rope.freq_base_swa"));
  rope.freq_base = base.value_or(kGemma4LocalRopeBase);
  if (!(rope.freq_base > 0.0)) {
    return bad_key("rope.freq_base_swa", fmt::format("must be above 0, is {}", rope.freq_base));
  }
  rope.takes_freq_factors = false;
  config.set_layer_ropes([&](std::int32_t layer) { return config.has_window(layer) ? rope : config.rope; });
  return {};
}

// Most pairs of a global layer stand still. The tensor says which.
Status check_freq_factors(const io::WeightSource& source, const ModelConfig& config) {
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) {
    if (config.has_window(layer) || source.find(kFreqFactors) != nullptr) continue;
    return make_error(ErrorKind::kBadFile,
                      fmt::format("tensor {}: missing, so nobody knows which pairs of layer {} turn", kFreqFactors,
                                  layer));
  }
  return {};
}

Status configure_gemma4(const io::WeightSource& source, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  KVASIR_TRY(const auto scale, metadata.find_float("gemma4.attention.scale"));
  if (scale.value_or(0.0) == 0.0) config.attention_scale = 1.0f;
  if (metadata.find("gemma4.final_logit_softcapping") == nullptr) config.final_softcap = kGemma4FinalSoftcap;
  KVASIR_TRY(config.moe, read_moe_config(metadata, "gemma4.", {.renormalizes = true}));
  config.moe.is_beside_dense = config.moe.has_experts();
  KVASIR_TRY(const auto per_layer,
             metadata.find_int("gemma4.embedding_length_per_layer_input", 0, kMaxPerLayerSize));
  config.per_layer_size = static_cast<std::int32_t>(per_layer.value_or(0));
  KVASIR_CHECKED(split_windows(source, {.period = 6}, config));
  KVASIR_CHECKED(set_local_heads(metadata, config));
  KVASIR_CHECKED(check_freq_factors(source, config));
  return share_kv(metadata, config);
}

class Gemma4Decoder final : public Decoder {
 public:
  using Decoder::Decoder;

 private:
  // Experts beside the dense network. Both read the residual stream, each by a norm of its own.
  struct Experts {
    Norm router_norm, norm;       // of what the router and the experts read
    Norm dense_post_norm, post_norm;  // of both networks' outputs, before their sum
    Moe moe;
  };
  struct Layer {
    Norm attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;
    Attention attention;
    Mlp mlp;
    std::optional<Experts> experts;
    std::optional<PerLayerEmbedding> embedding;
    float scale = 1.0f;  // of what goes on to the next layer
  };

  Status load_layers(WeightLoader& loader) override;
  Result<Layer> load_layer(WeightLoader& loader, std::int32_t index) const;
  Result<Norm> load_layer_norm(WeightLoader& loader, std::int32_t index, const char* name) const;
  Result<Experts> load_experts(WeightLoader& loader, std::int32_t index) const;
  void run_inputs(const LayerRun& run) override;
  bool run_layer(const LayerRun& run) override;
  static void run_both(const LayerRun& run, const Layer& layer, float scale);

  std::optional<PerLayerInputs> inputs_;
  std::vector<Layer> layers_;
};

Status Gemma4Decoder::load_layers(WeightLoader& loader) {
  if (config_.per_layer_size > 0) {
    KVASIR_TRY(inputs_, load_per_layer_inputs(loader, config_));
  }
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    KVASIR_TRY(Layer layer, load_layer(loader, i));
    layer.attention.rope = ropes_.add(config_.rope_of(i), backend::RopeStyle::kHalves);
    layers_.push_back(std::move(layer));
  }
  return {};
}

Result<Norm> Gemma4Decoder::load_layer_norm(WeightLoader& loader, std::int32_t index, const char* name) const {
  return load_norm(loader, fmt::format("blk.{}.{}", index, name), backend::NormKind::kRms, config_.hidden_size,
                   config_.norm_eps);
}

Result<Gemma4Decoder::Layer> Gemma4Decoder::load_layer(WeightLoader& loader, std::int32_t index) const {
  Layer layer;
  KVASIR_TRY(layer.attention_norm, load_layer_norm(loader, index, "attn_norm"));
  KVASIR_TRY(layer.attention_post_norm, load_layer_norm(loader, index, "post_attention_norm"));
  KVASIR_TRY(layer.mlp_norm, load_layer_norm(loader, index, "ffn_norm"));
  KVASIR_TRY(layer.mlp_post_norm, load_layer_norm(loader, index, "post_ffw_norm"));
  KVASIR_TRY(layer.attention,
             load_attention(loader, config_, index,
                            {.qk_norm = QkNorm::kHeads,
                             .norms_v = true,
                             .v_may_be_k = !config_.has_window(index)}));
  KVASIR_TRY(layer.mlp, load_mlp(loader, config_, index, {.kind = kGemma4Activation}));
  if (config_.moe.has_experts()) {
    KVASIR_TRY(layer.experts, load_experts(loader, index));
  }
  if (config_.per_layer_size > 0) {
    KVASIR_TRY(layer.embedding, load_per_layer_embedding(loader, config_, index));
  }
  KVASIR_TRY(const auto scale, loader.optional_vector(fmt::format("blk.{}.layer_output_scale.weight", index), 1));
  if (!scale.empty()) layer.scale = scale[0];
  return layer;
}

Result<Gemma4Decoder::Experts> Gemma4Decoder::load_experts(WeightLoader& loader, std::int32_t index) const {
  Experts experts;
  KVASIR_TRY(experts.norm, load_layer_norm(loader, index, "pre_ffw_norm_2"));
  KVASIR_TRY(experts.dense_post_norm, load_layer_norm(loader, index, "post_ffw_norm_1"));
  KVASIR_TRY(experts.post_norm, load_layer_norm(loader, index, "post_ffw_norm_2"));
  experts.router_norm = {.kind = backend::NormKind::kRms, .weight = {}, .bias = {}, .eps = config_.norm_eps};
  KVASIR_TRY(experts.router_norm.weight,
             loader.vector(fmt::format("blk.{}.ffn_gate_inp.scale", index), config_.hidden_size));
  const float factor = 1.0f / std::sqrt(static_cast<float>(config_.hidden_size));
  for (float& weight : experts.router_norm.weight) weight *= factor;
  KVASIR_TRY(experts.moe, load_moe(loader, config_, index, {.activation = kGemma4Activation}));
  return experts;
}

void Gemma4Decoder::run_inputs(const LayerRun& run) {
  if (inputs_) run_per_layer_inputs(run, *inputs_);
}

bool Gemma4Decoder::run_layer(const LayerRun& run) {
  auto& [op, ws, config, index] = run;
  const Layer& layer = layers_[static_cast<std::size_t>(index)];

  op.norm(ws.x, layer.attention_norm.op(), *ws.h);
  if (!run_attention(run, layer.attention)) return false;
  add_to_residual(run, attention_rows(run, layer.attention), attention_output(layer.attention),
                  layer.attention_post_norm);

  op.norm(ws.x, layer.mlp_norm.op(), *ws.h);
  run_mlp(run, layer.mlp);
  const float scale = layer.embedding ? 1.0f : layer.scale;  // once, by the last addition
  if (layer.experts) {
    run_both(run, layer, scale);
  } else {
    add_to_residual(run, mlp_rows(run, layer.mlp), mlp_output(layer.mlp), layer.mlp_post_norm, scale);
  }
  if (layer.embedding) mix_per_layer_embedding(run, *layer.embedding, layer.scale);
  return true;
}

// ws.x = scale * (ws.x + norm(norm(dense network) + norm(experts))), with the dense network's rows in mlp_rows().
void Gemma4Decoder::run_both(const LayerRun& run, const Layer& layer, float scale) {
  auto& [op, ws, config, index] = run;
  const Experts& experts = *layer.experts;
  const auto add_normed = [&](const Norm& norm, bool replaces) {
    op.norm_add(
        {.y = ws.y, .weight = norm.weight, .eps = norm.eps, .x = ws.moe->sum, .replaces = replaces});
  };
  backend::MatmulOp down = mlp_output(layer.mlp);
  down.out = ws.y;
  op.matmul(mlp_rows(run, layer.mlp), {&down, 1});
  add_normed(experts.dense_post_norm, true);

  op.norm(ws.x, experts.router_norm.op(), *ws.h);
  route_rows(run, experts.moe);
  op.norm(ws.x, experts.norm.op(), *ws.h);
  mix_experts(run, experts.moe, ws.y);
  add_normed(experts.post_norm, false);

  const Norm& norm = layer.mlp_post_norm;
  op.norm_add({.y = ws.moe->sum, .weight = norm.weight, .eps = norm.eps, .x = ws.x, .scale = scale});
}

}  // namespace

const Architecture kGemma4 = {"gemma4",
                              configure_gemma4,
                              load_decoder<Gemma4Decoder>,
                              {"embedding_length_per_layer_input", "attention.shared_kv_layers"}};

}  // namespace kvasir::model
