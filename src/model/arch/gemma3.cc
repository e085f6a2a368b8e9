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
// Gemma 3 27B scales its queries by another number than its siblings. No key says so, only its size.
constexpr std::int32_t kNumLayersOf27B = 62;

// Position scaling stretches the global layers only.
Result<RopeConfig> local_rope(const io::Metadata& metadata, RopeConfig rope) {
  KVASIR_TRY(auto base, metadata.find_float("gemma3.rope.freq_base_swa"));
  if (!base) {
    KVASIR_TRY(base, metadata.find_float("gemma3.rope.local.freq_base"));  // Ollama's name
  }
  rope.freq_base = base.value_or(kLocalRopeBase);
  rope.scaling = RopeScaling::kNone;
  if (rope.freq_base > 0.0) return rope;
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("metadata gemma3.rope.freq_base_swa: must be above 0, is {}", rope.freq_base));
}

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
    KVASIR_TRY(const RopeConfig local, local_rope(loader.metadata(), config_.rope));
    std::vector<std::int32_t> rope_of_group;
    for (const LayerGroup& group : config_.layer_groups) {
      const RopeConfig& rope = group.window > 0 ? local : config_.rope;
      rope_of_group.push_back(ropes_.add(rope, kernels::RopeStyle::kHalves));
    }
    for (std::int32_t i = 0; i < config_.num_layers; ++i) {
      const std::string prefix = fmt::format("blk.{}.", i);
      Layer layer;
      KVASIR_TRY(layer.attention, load_attention(loader, config_, i, {.qk_norm = true}));
      layer.attention.rope = rope_of_group[static_cast<std::size_t>(layer.attention.kv.group)];
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

// For each layer whether it looks at a window only. The file has a flag for each, or a period whose last
// layer is global: 1 means that all are, 0 that none is.
Result<std::vector<bool>> read_pattern(const io::Metadata& metadata, const ModelConfig& config) {
  constexpr const char* kKey = "gemma3.attention.sliding_window_pattern";
  std::vector<bool> is_local;
  if (metadata.is_array(kKey)) {
    KVASIR_TRY(const auto flags, metadata.find_ints(kKey));
    if (std::ssize(*flags) < config.num_layers) {
      return make_error(ErrorKind::kBadFile, fmt::format("metadata {}: must have an entry for each of the {} "
                                                         "layers, has {}",
                                                         kKey, config.num_layers, flags->size()));
    }
    for (std::int32_t i = 0; i < config.num_layers; ++i) {
      is_local.push_back((*flags)[static_cast<std::size_t>(i)] != 0);
    }
    return is_local;
  }
  KVASIR_TRY(const auto pattern, metadata.find_int(kKey, 0, 1024));
  const std::int64_t period = pattern.value_or(kDefaultPattern);
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    is_local.push_back(period == 0 || i % period != period - 1);
  }
  return is_local;
}

// Splits the layers into the global group and the sliding-window group. Without a window all are global.
Status split_layers(const io::Metadata& metadata, ModelConfig& config) {
  KVASIR_TRY(const auto window, metadata.find_int("gemma3.attention.sliding_window", 0, 1 << 28));
  if (window.value_or(0) == 0) return {};
  KVASIR_TRY(const std::vector<bool> is_local, read_pattern(metadata, config));
  LayerGroup global, local;
  local.window = static_cast<std::int32_t>(*window);
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    (is_local[static_cast<std::size_t>(i)] ? local : global).layers.push_back(i);
  }
  config.layer_groups.clear();
  for (LayerGroup* group : {&global, &local}) {
    if (!group->layers.empty()) config.layer_groups.push_back(std::move(*group));
  }
  return {};
}

// Window layers whose heads have another size than the global ones'.
Status refuse_other_local_heads(const io::Metadata& metadata, const ModelConfig& config) {
  const std::pair<const char*, std::int32_t> sizes[] = {
      {"gemma3.attention.key_length_swa", config.head_dim},
      {"gemma3.attention.value_length_swa", config.head_dim},
      {"gemma3.rope.dimension_count_swa", config.rope.rotary_dim},
  };
  for (const auto& [key, size] : sizes) KVASIR_CHECKED(metadata.find_int(key, size, size));
  return {};
}

Status configure_gemma3(const io::WeightSource& source, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  KVASIR_CHECKED(refuse_other_local_heads(metadata, config));
  KVASIR_TRY(const auto scale, metadata.find_float("gemma3.attention.scale"));
  if (scale.value_or(0.0) == 0.0 && config.num_layers == kNumLayersOf27B) {
    const auto width = static_cast<double>(config.hidden_size / config.num_heads);
    config.attention_scale = static_cast<float>(1.0 / std::sqrt(width));
  }
  return split_layers(metadata, config);
}

}  // namespace

const Architecture kGemma3 = {"gemma3", configure_gemma3, load_decoder<Gemma3>};

}  // namespace kvasir::model
