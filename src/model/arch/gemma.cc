// Gemma 2 and 3, EmbeddingGemma: layers that see a window between layers that see every token, norms before and after each
// sub-layer, GeGLU, scaled embeddings (Gemma Team 2024 and 2025).
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

constexpr double kLocalRopeBase = 10000.0;
constexpr std::int64_t kGemma2Window = 4096;
constexpr float kGemma2AttentionSoftcap = 50.0f, kGemma2FinalSoftcap = 30.0f;
// The 27B models scale their queries by another number than their siblings. No key says so, only their size.
constexpr std::int32_t kGemma2LayersOf27B = 46, kGemma3LayersOf27B = 62;

// Embeddings and queries; `layers_of_27b` is the family's.
Status set_scales(const io::WeightSource& source, std::int32_t layers_of_27b, ModelConfig& config) {
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  KVASIR_TRY(const auto scale, source.metadata().find_float(config.architecture + ".attention.scale"));
  if (scale.value_or(0.0) != 0.0 || config.num_layers != layers_of_27b) return {};
  const auto width = static_cast<double>(config.hidden_size / config.num_heads);
  config.attention_scale = static_cast<float>(1.0 / std::sqrt(width));
  return {};
}

// Position scaling stretches the global layers only.
Result<RopeConfig> local_rope(const io::Metadata& metadata, const ModelConfig& config) {
  const std::string prefix = config.architecture + ".rope.";
  KVASIR_TRY(auto base, metadata.find_float(prefix + "freq_base_swa"));
  if (!base) {
    KVASIR_TRY(base, metadata.find_float(prefix + "local.freq_base"));  // Ollama's name
  }
  RopeConfig rope{.freq_base = base.value_or(kLocalRopeBase), .rotary_dim = config.rope.rotary_dim};
  rope.takes_freq_factors = false;
  if (rope.freq_base > 0.0) return rope;
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("metadata {}freq_base_swa: must be above 0, is {}", prefix, rope.freq_base));
}

// Window layers whose heads have another size than the global ones'.
Status refuse_other_local_heads(const io::Metadata& metadata, const ModelConfig& config) {
  const std::pair<const char*, std::int32_t> sizes[] = {
      {".attention.key_length_swa", config.head_dim},
      {".attention.value_length_swa", config.head_dim},
      {".rope.dimension_count_swa", config.rope.rotary_dim},
  };
  for (const auto& [key, size] : sizes) {
    KVASIR_CHECKED(metadata.find_int(config.architecture + key, size, size));
  }
  return {};
}

Status configure_gemma3(const io::WeightSource& source, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  KVASIR_CHECKED(refuse_other_local_heads(metadata, config));
  KVASIR_CHECKED(set_scales(source, kGemma3LayersOf27B, config));
  KVASIR_CHECKED(split_windows(source, {.period = 6}, config));
  KVASIR_TRY(const RopeConfig local, local_rope(metadata, config));
  config.set_layer_ropes([&](std::int32_t layer) { return config.has_window(layer) ? local : config.rope; });
  return {};
}

// Caps that a file of Gemma 2 does not name are there all the same.
Status configure_gemma2(const io::WeightSource& source, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  if (metadata.find("gemma2.attn_logit_softcapping") == nullptr) {
    config.attention_softcap = kGemma2AttentionSoftcap;
  }
  if (metadata.find("gemma2.final_logit_softcapping") == nullptr) config.final_softcap = kGemma2FinalSoftcap;
  KVASIR_CHECKED(set_scales(source, kGemma2LayersOf27B, config));
  return split_windows(source, {.period = 2, .default_window = kGemma2Window}, config);
}

constexpr MlpParts kGeGlu = {.kind = backend::Gate::kGeluTanh};
constexpr auto load_gemma3 = load_dense<{.has_post_norms = true,
                                         .attention = {.qk_norm = QkNorm::kHeads},
                                         .mlp = kGeGlu}>;

}  // namespace

const Architecture kGemma2 = {"gemma2", configure_gemma2,
                              load_dense<{.has_post_norms = true, .mlp = kGeGlu}>};
const Architecture kGemma3 = {"gemma3", configure_gemma3, load_gemma3};
// EmbeddingGemma: Gemma 3 with attention to both sides, and dense layers behind the mean.
const Architecture kGemmaEmbedding = {
    .name = "gemma-embedding", .configure = configure_gemma3, .load = load_gemma3, .is_encoder = true};

}  // namespace kvasir::model
