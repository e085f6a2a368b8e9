// Decoders of the Llama shape: pre-norm, grouped-query attention, SwiGLU (Touvron et al. 2023).
#include <fmt/format.h>

#include <string>

#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

using backend::RopeStyle;

// All layers see a window where the file has one (Mistral 7B v0.1).
Status configure_llama(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_TRY(config.moe, read_moe_config(source.metadata(), config.architecture + ".", {}));
  return split_windows(source, {.period = WindowPattern::kEveryLayer}, config);
}

// Which layers see a window, the file must say.
Status configure_qwen(const io::WeightSource& source, ModelConfig& config) {
  return split_windows(source, {.period = WindowPattern::kUnknown}, config);
}

// Each fourth layer does not turn its heads (SmolLM3's release notes, 2025). No key of GGUF files says so; a folder has
// a flag for each layer.
Status configure_smollm3(const io::WeightSource& source, ModelConfig& config) {
  constexpr std::int32_t kPeriod = 4;
  KVASIR_CHECKED(configure_qwen(source, config));
  const std::string key = config.architecture + ".rope.layers";
  KVASIR_TRY(const auto flags, source.metadata().find_ints(key));
  if (flags && std::ssize(*flags) < config.num_layers) {
    return make_error(ErrorKind::kBadFile, fmt::format("metadata {}: must have an entry for each of the {} layers, has {}",
                                                       key, config.num_layers, flags->size()));
  }
  RopeConfig none = config.rope;
  none.rotary_dim = 0;
  config.set_layer_ropes([&](std::int32_t layer) {
    const bool turns = flags ? (*flags)[static_cast<std::size_t>(layer)] != 0 : (layer + 1) % kPeriod != 0;
    return turns ? config.rope : none;
  });
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
const Architecture kSmolLm3 = {
    .name = "smollm3", .configure = configure_smollm3, .load = load_llama, .keys = {"rope.layers"}};
// Qwen 2 and 2.5 (Yang et al. 2024).
const Architecture kQwen2 = {"qwen2", configure_qwen, load_qwen2};
// Qwen 3 (Yang et al. 2025).
const Architecture kQwen3 = {"qwen3", configure_qwen, load_qwen3};
// The decoders of Qwen's vision models. For text their three positions are one, and turn as usual.
const Architecture kQwen2Vl = {"qwen2vl", configure_qwen, load_qwen2};
const Architecture kQwen3Vl = {"qwen3vl", configure_qwen, load_qwen3};
const Architecture kSeedOss = {"seed_oss", configure_qwen, load_dense<{.mlp_norm = MlpNorm::kPostAttention}>};

}  // namespace kvasir::model
