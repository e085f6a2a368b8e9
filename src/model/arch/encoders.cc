// Encoders: BERT (Devlin et al. 2018), which MiniLM, bge, e5 and XLM-RoBERTa follow, Nomic BERT (Nussbaum et al.
// 2024) and ModernBERT (Warner et al. 2024). EmbeddingGemma stands beside Gemma.
#include <fmt/format.h>

#include <string>

#include "base/printable.h"
#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

constexpr std::int64_t kMaxFirstRow = 1024;
constexpr double kModernBertLocalBase = 10000.0;
constexpr std::int64_t kModernBertWindow = 128, kModernBertPeriod = 3;

// Positions are learned. A folder of XLM-RoBERTa has rows before that of the first token, which count for the
// context.
Status configure_bert(const io::WeightSource& source, ModelConfig& config) {
  config.has_learned_positions = true;
  config.rope = {.rotary_dim = 0};
  KVASIR_TRY(const auto first, source.metadata().find_int("bert.first_position_row", 0, kMaxFirstRow));
  config.first_position_row = static_cast<std::int32_t>(first.value_or(0));
  config.context_length_tokens -= config.first_position_row;
  if (config.context_length_tokens > 0) return {};
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("metadata bert.context_length: must be above the {} rows before the first "
                  "position, is {}",
                  config.first_position_row, config.context_length_tokens + config.first_position_row));
}

Status configure_nomic_bert(const io::WeightSource& source, ModelConfig& config) {
  return split_windows(source, {.period = WindowPattern::kEveryLayer}, config);
}

// The first of each three layers sees every token.
Status configure_modern_bert(const io::WeightSource& source, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  KVASIR_TRY(const auto activation, metadata.find_string("modern-bert.hidden_activation"));
  if (activation.value_or("gelu") != "gelu") {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata modern-bert.hidden_activation: must be gelu or absent, is {}",
                                  printable(*activation)));
  }
  KVASIR_CHECKED(split_windows(
      source, {.period = kModernBertPeriod, .default_window = kModernBertWindow, .first_sees_all = true},
      config));
  KVASIR_TRY(const auto base, metadata.find_float("modern-bert.rope.freq_base_swa"));
  RopeConfig local = config.rope;
  local.freq_base = base.value_or(kModernBertLocalBase);
  if (local.freq_base <= 0.0) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata modern-bert.rope.freq_base_swa: must be above 0, is {}", local.freq_base));
  }
  config.set_layer_ropes([&](std::int32_t layer) { return config.has_window(layer) ? local : config.rope; });
  return {};
}

constexpr MlpParts kPlainGelu = {.kind = backend::Gate::kGeluErf, .is_gated = false};
constexpr MlpParts kGeGluErf = {.kind = backend::Gate::kGeluErf};

}  // namespace

const Architecture kBert = {.name = "bert",
                            .configure = configure_bert,
                            .load = load_dense<{.norm = backend::NormKind::kLayer,
                                                .has_pre_norms = false,
                                                .has_stream_norms = true,
                                                .has_embedding_norm = true,
                                                .mlp = kPlainGelu}>,
                            .keys = {"first_position_row"},
                            .is_encoder = true};
const Architecture kNomicBert = {.name = "nomic-bert",
                                 .configure = configure_nomic_bert,
                                 .load = load_dense<{.norm = backend::NormKind::kLayer,
                                                     .has_pre_norms = false,
                                                     .has_stream_norms = true,
                                                     .has_embedding_norm = true}>,
                                 .is_encoder = true};
const Architecture kModernBert = {.name = "modern-bert",
                                  .configure = configure_modern_bert,
                                  .load = load_dense<{.norm = backend::NormKind::kLayer,
                                                      .has_embedding_norm = true,
                                                      .lacks_first_norm = true,
                                                      .mlp = kGeGluErf,
                                                      .classifier = HeadActivation::kGeluErf}>,
                                  .keys = {"hidden_activation"},
                                  .is_encoder = true};

}  // namespace kvasir::model
