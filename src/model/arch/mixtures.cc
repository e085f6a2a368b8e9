// Mixtures of experts whose layers are those of a dense family otherwise.
#include "model/arch/dense.h"
#include "model/arch/granite.h"
#include "model/moe_config.h"

namespace kvasir::model {
namespace {

using backend::RouterScore;

Status read_experts(const io::WeightSource& source, const MoeDefaults& defaults, ModelConfig& config) {
  KVASIR_TRY(config.moe, read_moe_config(source.metadata(), config.architecture + ".", defaults));
  return {};
}

Status configure_qwen3moe(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(read_experts(source, {.renormalizes = true}, config));
  return split_windows(source, {.period = WindowPattern::kUnknown}, config);
}

Status configure_qwen2moe(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(read_experts(source, {.renormalizes = false, .has_shared_expert = true}, config));
  return split_windows(source, {.period = WindowPattern::kUnknown}, config);
}

Status configure_olmoe(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(read_experts(source, {.renormalizes = false}, config));
  return split_windows(source, {.period = WindowPattern::kUnknown}, config);
}

Status configure_granitemoe(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(read_experts(source, {.renormalizes = true}, config));
  return configure_granite(source, config);
}

// Each second layer sees all; YaRN's borders are not rounded, which no key says.
Status configure_gpt_oss(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(read_experts(source, {.renormalizes = true}, config));
  config.rope.yarn_rounds = false;
  return split_windows(source, {.period = 2}, config);
}

Status configure_glm4moe(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(read_experts(source, {.score = RouterScore::kSigmoid, .renormalizes = true}, config));
  return split_windows(source, {.period = WindowPattern::kUnknown}, config);
}

// Q and K are normalised in the largest of the family only.
constexpr DenseShape glm4moe_shape(QkNorm qk_norm) {
  return {.mlp_norm = MlpNorm::kPostAttention,
          .attention = {.qk_norm = qk_norm},
          .moe = {.choice_bias = true}};
}

Result<std::unique_ptr<Model>> load_glm4moe(ModelConfig config, WeightLoader& loader, backend::Backend& backend,
                                            const WorkspaceLimits& limits) {
  const bool has_norms = loader.has("blk.0.attn_q_norm.weight");
  const auto load = has_norms ? load_dense<glm4moe_shape(QkNorm::kHeads)>
                              : load_dense<glm4moe_shape(QkNorm::kNone)>;
  return load(std::move(config), loader, backend, limits);
}

constexpr auto load_qwen3moe = load_dense<{.attention = {.qk_norm = QkNorm::kHeads}}>;

}  // namespace

// Qwen 3's mixtures (Yang et al. 2025), and the decoder of its vision model.
const Architecture kQwen3Moe = {"qwen3moe", configure_qwen3moe, load_qwen3moe};
const Architecture kQwen3VlMoe = {"qwen3vlmoe", configure_qwen3moe, load_qwen3moe};
// Qwen 1.5 and 2's mixtures: a shared expert, which counts by a gate of its own (Qwen Team 2024).
const Architecture kQwen2Moe = {
    "qwen2moe", configure_qwen2moe,
    load_dense<{.attention = {.qkv_bias = true}, .moe = {.shared_weight = true}}>};
// OLMoE (Muennighoff et al. 2024).
const Architecture kOlmoe = {"olmoe", configure_olmoe, load_dense<{.attention = {.qk_norm = QkNorm::kRows}}>};
// Granite 3's mixtures (IBM 2024).
const Architecture kGraniteMoe = {"granitemoe", configure_granitemoe,
                                  load_dense<{.rope = backend::RopeStyle::kInterleaved}>};
// gpt-oss (OpenAI 2025): attention sinks, windows, biases everywhere, a clamped SwiGLU.
const Architecture kGptOss = {
    "gpt-oss", configure_gpt_oss,
    load_dense<{.mlp_norm = MlpNorm::kPostAttention,
                .attention = {.qkv_bias = true, .sinks = true},
                .moe = {.biases = true, .activation = backend::Gate::kSwigluOai}}>};
// GLM-4.5 to 4.7 (Zhipu 2025): sigmoid scores, a bias on the choice, leading dense layers, a shared expert.
const Architecture kGlm4Moe = {"glm4moe", configure_glm4moe, load_glm4moe};

}  // namespace kvasir::model
