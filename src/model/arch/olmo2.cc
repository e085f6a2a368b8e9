// Norms behind the sub-layers only: OLMo 2 and 3 (OLMo Team 2024, 2025) and EXAONE 4 (LG AI Research 2025).
#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

constexpr std::int64_t kWindowPeriod = 4;  // three layers that see a window, then one that sees all

// OLMo 3 has windows, and scales RoPE on the other layers only.
Status configure_olmo2(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(split_windows(source, {.period = kWindowPeriod}, config));
  KVASIR_TRY(const auto base, source.metadata().find_float("olmo2.rope.freq_base_swa"));
  RopeConfig local{.freq_base = base.value_or(config.rope.freq_base), .rotary_dim = config.rope.rotary_dim};
  local.takes_freq_factors = false;
  if (!(local.freq_base > 0.0)) {
    return make_error(ErrorKind::kBadFile, "metadata olmo2.rope.freq_base_swa: must be above 0");
  }
  config.set_layer_ropes([&](std::int32_t layer) { return config.has_window(layer) ? local : config.rope; });
  return {};
}

// Where there are windows, the layers without one do not turn their heads. The 1.2B model has none.
Status configure_exaone4(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_CHECKED(split_windows(source, {.period = kWindowPeriod}, config));
  RopeConfig none = config.rope;
  if (config.has_windows()) none.rotary_dim = 0;
  config.set_layer_ropes([&](std::int32_t layer) { return config.has_window(layer) ? config.rope : none; });
  return {};
}

}  // namespace

const Architecture kOlmo2 = {
    "olmo2", configure_olmo2,
    load_dense<{.has_pre_norms = false, .has_post_norms = true, .attention = {.qk_norm = QkNorm::kRows}}>};
const Architecture kExaone4 = {
    "exaone4", configure_exaone4,
    load_dense<{.has_pre_norms = false, .has_post_norms = true, .attention = {.qk_norm = QkNorm::kHeads}}>};

}  // namespace kvasir::model
