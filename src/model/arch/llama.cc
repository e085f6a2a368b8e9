// Decoders of the Llama shape: pre-norm, grouped-query attention, SwiGLU (Touvron et al. 2023).
#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

using kernels::RopeStyle;

// All layers see a window where the file has one (Mistral 7B v0.1).
Status configure_llama(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_TRY(config.moe, read_moe_config(source.metadata(), config.architecture + ".", {}));
  return split_windows(source, {.period = WindowPattern::kEveryLayer}, config);
}

// Which layers see a window, the file must say.
Status configure_qwen(const io::WeightSource& source, ModelConfig& config) {
  return split_windows(source, {.period = WindowPattern::kUnknown}, config);
}

// Each fourth layer does not turn its heads; no key says so (SmolLM3's release notes, 2025).
Status configure_smollm3(const io::WeightSource& source, ModelConfig& config) {
  constexpr std::int32_t kPeriod = 4;
  KVASIR_CHECKED(configure_qwen(source, config));
  RopeConfig none = config.rope;
  none.rotary_dim = 0;
  config.set_layer_ropes([&](std::int32_t layer) { return (layer + 1) % kPeriod == 0 ? none : config.rope; });
  return {};
}

constexpr auto load_qwen2 = load_dense<{.attention = {.qkv_bias = true}}>;
constexpr auto load_qwen3 = load_dense<{.attention = {.qk_norm = QkNorm::kHeads}}>;
constexpr auto load_llama = load_dense<{.rope = RopeStyle::kInterleaved}>;

}  // namespace

// Llama 1-3, SmolLM2, Mistral, TinyLlama, and Mixtral (Jiang et al. 2024) with its experts. Llama 3's piecewise scaling of frequencies is stored as divisors.
const Architecture kLlama = {"llama", configure_llama, load_llama};
// Ministral 3: YaRN, and queries that grow with the position.
const Architecture kMistral3 = {"mistral3", configure_llama, load_llama};
const Architecture kSmolLm3 = {"smollm3", configure_smollm3, load_llama};
// Qwen 2 and 2.5 (Yang et al. 2024).
const Architecture kQwen2 = {"qwen2", configure_qwen, load_qwen2};
// Qwen 3 (Yang et al. 2025).
const Architecture kQwen3 = {"qwen3", configure_qwen, load_qwen3};
// The decoders of Qwen's vision models. For text their three positions are one, and turn as usual.
const Architecture kQwen2Vl = {"qwen2vl", configure_qwen, load_qwen2};
const Architecture kQwen3Vl = {"qwen3vl", configure_qwen, load_qwen3};
const Architecture kSeedOss = {"seed_oss", configure_qwen, load_dense<{.mlp_norm = MlpNorm::kPostAttention}>};

}  // namespace kvasir::model
