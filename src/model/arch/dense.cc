// Decoders of the Llama shape: pre-norm, grouped-query attention, SwiGLU (Touvron et al. 2023). A row at the
// end of this file is a family.
#include <utility>
#include <vector>

#include "model/arch/registry.h"
#include "model/decoder.h"
#include "model/layers/attention.h"
#include "model/layers/gated_mlp.h"

namespace kvasir::model {
namespace {

// The parts in which the families differ.
struct DenseShape {
  kernels::RopeStyle rope = kernels::RopeStyle::kHalves;
  bool freq_factors = false;  // of RoPE, one per frequency, where the file has them
  AttentionParts attention = {};
};

template <DenseShape kShape>
class Dense final : public Decoder {
 public:
  using Decoder::Decoder;

 private:
  struct Layer {
    Attention attention;
    GatedMlp mlp;
  };

  Status load_layers(WeightLoader& loader) override {
    if constexpr (kShape.freq_factors) {
      KVASIR_TRY(config_.rope.freq_factors, load_freq_factors(loader, config_.rope));
    }
    const std::int32_t rope = ropes_.add(config_.rope, config_.rope_style.value_or(kShape.rope));
    for (std::int32_t i = 0; i < config_.num_layers; ++i) {
      Layer layer;
      KVASIR_TRY(layer.attention, load_attention(loader, config_, i, kShape.attention));
      KVASIR_TRY(layer.mlp, load_gated_mlp(loader, config_, i));
      layer.attention.rope = rope;
      layers_.push_back(std::move(layer));
    }
    return {};
  }

  void run_layer(const LayerRun& run) override {
    auto& [op, ws, config, index] = run;
    const auto& [attention, mlp] = layers_[static_cast<std::size_t>(index)];

    op.norm(ws.x, attention.norm, config.rms_norm_eps, *ws.h);
    if (!run_attention(run, attention)) return;
    op.matmul_add(*ws.attn, *attention.wo, ws.x);

    op.norm(ws.x, mlp.norm, config.rms_norm_eps, *ws.h);
    run_gated_mlp(run, mlp, backend::Gate::kSilu);
    op.matmul_add(*ws.ff, *mlp.down, ws.x);
  }

  std::vector<Layer> layers_;
};

Status configure(const io::WeightSource& source, ModelConfig& config) {
  return refuse_sliding_window(source, config);
}

}  // namespace

// Llama 1-3, SmolLM2, Mistral, TinyLlama. Llama 3's piecewise scaling of frequencies is stored as divisors.
const Architecture kLlama = {
    "llama", configure,
    load_decoder<Dense<{.rope = kernels::RopeStyle::kInterleaved, .freq_factors = true}>>};
// Qwen 2 and 2.5 (Yang et al. 2024).
const Architecture kQwen2 = {"qwen2", configure, load_decoder<Dense<{.attention = {.qkv_bias = true}}>>};
// Qwen 3 (Yang et al. 2025).
const Architecture kQwen3 = {"qwen3", configure, load_decoder<Dense<{.attention = {.qk_norm = true}}>>};

}  // namespace kvasir::model
