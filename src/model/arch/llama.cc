// Llama 1-3, SmolLM2, Mistral, TinyLlama: pre-norm, grouped-query attention, SwiGLU (Touvron et al. 2023).
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "model/arch/registry.h"
#include "model/decoder.h"
#include "model/layers/attention.h"
#include "model/layers/mlp.h"

namespace kvasir::model {
namespace {

struct Layer {
  AttentionWeights attn;
  MlpWeights mlp;
};

class Llama final : public Decoder {
 public:
  using Decoder::Decoder;

  Status load(WeightLoader& loader, const WorkspaceLimits& limits) {
    // Llama 3's piecewise frequency scaling is stored as divisors, one per frequency.
    KVASIR_TRY(config_.rope.freq_factors, load_freq_factors(loader, config_.rope));
    rope_ = add_rope(config_.rope, kernels::RopeStyle::kInterleaved);
    for (std::int32_t i = 0; i < config_.num_layers; ++i) {
      const std::string prefix = fmt::format("blk.{}.", i);
      KVASIR_TRY(auto attn, load_attention(loader, prefix, config_));
      KVASIR_TRY(auto mlp, load_mlp(loader, prefix, config_));
      layers_.push_back({std::move(attn), std::move(mlp)});
    }
    return finish_load(loader, limits);
  }

 private:
  void run_layer(std::int32_t i) override {
    backend::Backend& op = backend_;
    const float eps = config_.rms_norm_eps;
    const auto& [attn, mlp] = layers_[static_cast<std::size_t>(i)];

    op.norm(ws_.x, attn.norm, eps, *ws_.h);
    const backend::MatmulOp qkv[] = {
        {.weight = attn.wq.get(), .out = ws_.q},
        {.weight = attn.wk.get(), .out = ws_.k},
        {.weight = attn.wv.get(), .out = ws_.v},
    };
    op.matmul(*ws_.h, qkv);
    op.rope_and_store({.q = ws_.q, .k = ws_.k, .v = ws_.v, .rope_index = rope_, .layer_in_group = i});
    const bool is_last = i + 1 == config_.num_layers;
    if (!attend({.q = ws_.q, .layer_in_group = i, .scale = config_.attention_scale}, is_last)) return;
    op.matmul_add(*ws_.attn, *attn.wo, ws_.x);

    op.norm(ws_.x, mlp.norm, eps, *ws_.h);
    const backend::MatmulOp gate_up[] = {
        {.weight = mlp.gate.get(), .out = ws_.gate},
        {.weight = mlp.up.get(), .out = ws_.up},
    };
    op.matmul(*ws_.h, gate_up);
    op.gate(backend::Gate::kSilu, ws_.gate, ws_.up, *ws_.ff);
    op.matmul_add(*ws_.ff, *mlp.down, ws_.x);
  }

  std::vector<Layer> layers_;
  std::int32_t rope_ = 0;
};

Status configure(const io::WeightSource& source, ModelConfig& config) {
  return refuse_sliding_window(source, config);
}

Result<std::unique_ptr<Model>> load(ModelConfig config, WeightLoader& loader, backend::Backend& backend,
                                    const WorkspaceLimits& limits) {
  auto model = std::make_unique<Llama>(std::move(config), backend);
  KVASIR_CHECKED(model->load(loader, limits));
  return model;
}

}  // namespace

const Architecture kLlama = {"llama", configure, load};

}  // namespace kvasir::model
