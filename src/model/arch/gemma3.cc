// Gemma 3: five sliding-window layers to one global layer, norms before and after each sub-layer,
// RMS-normalised heads of Q and K, GeGLU, scaled embeddings (Gemma Team 2025).
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/arch/registry.h"
#include "model/decoder.h"
#include "model/layers/attention.h"
#include "model/layers/gated_mlp.h"

namespace kvasir::model {
namespace {

constexpr double kLocalRopeBase = 10000.0;
constexpr std::int64_t kDefaultPattern = 6;  // each sixth layer is global

class Gemma3 final : public Decoder {
 public:
  Gemma3(ModelConfig config, backend::Backend& backend) : Decoder(std::move(config), backend) {
    embedding_scale_ = std::sqrt(static_cast<float>(config_.hidden_size));
  }

 private:
  struct Layer {
    Attention attention;
    GatedMlp mlp;
    std::vector<float> post_attention_norm, post_ffw_norm;  // [hidden]
  };

  Status load_layers(WeightLoader& loader) override {
    RopeConfig local = config_.rope;
    local.freq_base = kLocalRopeBase;
    local.scaling = RopeScaling::kNone;  // position scaling stretches the global layers only
    const std::int32_t rope_of_group[] = {ropes_.add(config_.rope, kernels::RopeStyle::kHalves),
                                          ropes_.add(local, kernels::RopeStyle::kHalves)};
    for (std::int32_t i = 0; i < config_.num_layers; ++i) {
      const std::string prefix = fmt::format("blk.{}.", i);
      Layer layer;
      KVASIR_TRY(layer.attention, load_attention(loader, config_, i, {.qk_norm = true}));
      layer.attention.rope = rope_of_group[layer.attention.kv.group];
      KVASIR_TRY(layer.post_attention_norm,
                 loader.vector(prefix + "post_attention_norm.weight", config_.hidden_size));
      KVASIR_TRY(layer.mlp, load_gated_mlp(loader, config_, i));
      KVASIR_TRY(layer.post_ffw_norm, loader.vector(prefix + "post_ffw_norm.weight", config_.hidden_size));
      layers_.push_back(std::move(layer));
    }
    return {};
  }

  void run_layer(const LayerRun& run) override {
    auto& [op, ws, config, index] = run;
    const float eps = config.rms_norm_eps;
    const auto& [attention, mlp, post_attention_norm,
                 post_ffw_norm] = layers_[static_cast<std::size_t>(index)];

    op.norm(ws.x, attention.norm, eps, *ws.h);
    if (!run_attention(run, attention)) return;
    const backend::MatmulOp out[] = {{.weight = attention.wo.get(), .out = ws.y}};
    op.matmul(*ws.attn, out);
    op.norm_add(ws.y, post_attention_norm, eps, ws.x);

    op.norm(ws.x, mlp.norm, eps, *ws.h);
    run_gated_mlp(run, mlp, backend::Gate::kGeluTanh);
    const backend::MatmulOp down[] = {{.weight = mlp.down.get(), .out = ws.y}};
    op.matmul(*ws.ff, down);
    op.norm_add(ws.y, post_ffw_norm, eps, ws.x);
  }

  std::vector<Layer> layers_;
};

// Splits the layers into the global group and the sliding-window group.
Status configure_gemma3(const io::WeightSource& source, ModelConfig& config) {
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

}  // namespace

const Architecture kGemma3 = {"gemma3", configure_gemma3, load_decoder<Gemma3>};

}  // namespace kvasir::model
