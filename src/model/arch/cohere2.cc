// Command R7B and Command A: attention and MLP side by side behind one layer norm, windows with RoPE between
// layers that see all and do not turn (Cohere 2024).
#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

constexpr std::int64_t kWindowPeriod = 4;
constexpr float kLogitScale = 0.0625f;

Status configure_cohere2(const io::WeightSource& source, ModelConfig& config) {
  config.has_parallel_residual = true;
  if (source.metadata().find("cohere2.logit_scale") == nullptr) config.logit_scale = kLogitScale;
  KVASIR_CHECKED(split_windows(source, {.period = kWindowPeriod}, config));
  if (!config.has_windows()) {
    return make_error(ErrorKind::kBadFile, "metadata cohere2.attention.sliding_window: missing or 0");
  }
  RopeConfig none = config.rope;
  none.rotary_dim = 0;
  config.set_layer_ropes([&](std::int32_t layer) { return config.has_window(layer) ? config.rope : none; });
  return {};
}

}  // namespace

const Architecture kCohere2 = {"cohere2", configure_cohere2,
                               load_dense<{.rope = backend::RopeStyle::kInterleaved,
                                           .norm = backend::NormKind::kLayer,
                                           .mlp_norm = MlpNorm::kOfAttention}>};

}  // namespace kvasir::model
