// Gemma 3: five sliding-window layers to one global layer, norms before and after each sub-layer,
// RMS-normalised heads of Q and K, GeGLU, scaled embeddings (Gemma Team 2025).
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "model/arch/registry.h"
#include "model/decoder.h"
#include "model/layers/attention.h"
#include "model/layers/mlp.h"

namespace kvasir::model {
namespace {

constexpr double kLocalRopeBase = 10000.0;
constexpr std::int64_t kDefaultPattern = 6;  // each sixth layer is global
constexpr std::int32_t kGlobalGroup = 0, kWindowGroup = 1;

struct Layer {
  AttentionWeights attn;
  MlpWeights mlp;
  std::vector<float> post_attention_norm, post_ffw_norm;
  std::int32_t group = 0;  // kGlobalGroup or kWindowGroup
  std::int32_t layer_in_group = 0;
  std::int32_t rope = 0;
};

class Gemma3 final : public Decoder {
 public:
  Gemma3(ModelConfig config, backend::Backend& backend) : Decoder(std::move(config), backend) {
    embedding_scale_ = std::sqrt(static_cast<float>(config_.hidden_size));
  }

  Status load(WeightLoader& loader, const WorkspaceLimits& limits) {
    RopeConfig local = config_.rope;
    local.freq_base = kLocalRopeBase;
    local.scaling = RopeScaling::kNone;  // position scaling stretches the global layers only
    const std::int32_t ropes[] = {add_rope(config_.rope, kernels::RopeStyle::kHalves),
                                  add_rope(local, kernels::RopeStyle::kHalves)};
    layers_.resize(static_cast<std::size_t>(config_.num_layers));
    for (std::int32_t group : {kGlobalGroup, kWindowGroup}) {
      std::int32_t layer_in_group = 0;
      for (std::int32_t i : config_.layer_groups[static_cast<std::size_t>(group)].layers) {
        KVASIR_TRY(Layer layer, load_layer(loader, fmt::format("blk.{}.", i)));
        layer.group = group;
        layer.layer_in_group = layer_in_group++;
        layer.rope = ropes[group];
        layers_[static_cast<std::size_t>(i)] = std::move(layer);
      }
    }
    return finish_load(loader, limits);
  }

 private:
  Result<Layer> load_layer(WeightLoader& loader, const std::string& prefix) {
    Layer layer;
    KVASIR_TRY(layer.attn, load_attention(loader, prefix, config_, {.qk_norm = true}));
    KVASIR_TRY(layer.post_attention_norm,
               loader.vector(prefix + "post_attention_norm.weight", config_.hidden_size));
    KVASIR_TRY(layer.mlp, load_mlp(loader, prefix, config_));
    KVASIR_TRY(layer.post_ffw_norm, loader.vector(prefix + "post_ffw_norm.weight", config_.hidden_size));
    return layer;
  }

  void run_layer(std::int32_t i) override {
    backend::Backend& op = backend_;
    const float eps = config_.rms_norm_eps;
    const auto& [attn, mlp, post_attention_norm, post_ffw_norm, group, layer_in_group, rope] =
        layers_[static_cast<std::size_t>(i)];

    op.norm(ws_.x, attn.norm, eps, *ws_.h);
    const backend::MatmulOp qkv[] = {
        {.weight = attn.wq.get(), .out = ws_.q},
        {.weight = attn.wk.get(), .out = ws_.k},
        {.weight = attn.wv.get(), .out = ws_.v},
    };
    op.matmul(*ws_.h, qkv);
    op.rope_and_store({.q = ws_.q,
                       .k = ws_.k,
                       .v = ws_.v,
                       .q_norm = attn.q_norm.data(),
                       .k_norm = attn.k_norm.data(),
                       .norm_eps = eps,
                       .rope_index = rope,
                       .group = group,
                       .layer_in_group = layer_in_group});
    const backend::AttendOp attention = {
        .q = ws_.q, .group = group, .layer_in_group = layer_in_group, .scale = config_.attention_scale};
    if (!attend(attention, i + 1 == config_.num_layers)) return;
    const backend::MatmulOp out[] = {{.weight = attn.wo.get(), .out = ws_.y}};
    op.matmul(*ws_.attn, out);
    op.norm_add(ws_.y, post_attention_norm, eps, ws_.x);

    op.norm(ws_.x, mlp.norm, eps, *ws_.h);
    const backend::MatmulOp gate_up[] = {
        {.weight = mlp.gate.get(), .out = ws_.gate},
        {.weight = mlp.up.get(), .out = ws_.up},
    };
    op.matmul(*ws_.h, gate_up);
    op.gate(backend::Gate::kGeluTanh, ws_.gate, ws_.up, *ws_.ff);
    const backend::MatmulOp down[] = {{.weight = mlp.down.get(), .out = ws_.y}};
    op.matmul(*ws_.ff, down);
    op.norm_add(ws_.y, post_ffw_norm, eps, ws_.x);
  }

  std::vector<Layer> layers_;
};

// Splits the layers into the global group and the sliding-window group.
Status configure(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_TRY(const std::int64_t window,
             source.metadata().get_int("gemma3.attention.sliding_window", 1, 1 << 28));
  KVASIR_TRY(const auto pattern,
             source.metadata().find_int("gemma3.attention.sliding_window_pattern", 2, 1024));
  KVASIR_TRY(const auto softcap, source.metadata().find_float("gemma3.final_logit_softcapping"));
  if (softcap.value_or(0.0) != 0.0) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata gemma3.final_logit_softcapping: must be 0 or absent, "
                                  "is {}",
                                  *softcap));
  }
  LayerGroup global, local;
  local.window = static_cast<std::int32_t>(window);
  const std::int64_t period = pattern.value_or(kDefaultPattern);
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    (i % period == period - 1 ? global : local).layers.push_back(i);
  }
  config.layer_groups = {std::move(global), std::move(local)};
  return {};
}

Result<std::unique_ptr<Model>> load(ModelConfig config, WeightLoader& loader, backend::Backend& backend,
                                    const WorkspaceLimits& limits) {
  auto model = std::make_unique<Gemma3>(std::move(config), backend);
  KVASIR_CHECKED(model->load(loader, limits));
  return model;
}

}  // namespace

const Architecture kGemma3 = {"gemma3", configure, load};

}  // namespace kvasir::model
