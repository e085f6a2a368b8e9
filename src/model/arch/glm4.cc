// GLM-4 0414: norms before and after each sub-layer, RoPE by pairs over half of a head (GLM Team 2024).
#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

Status configure_glm4(const io::WeightSource& source, ModelConfig& config) {
  return split_windows(source, {.period = WindowPattern::kUnknown}, config);
}

}  // namespace

const Architecture kGlm4 = {"glm4", configure_glm4,
                            load_dense<{.rope = backend::RopeStyle::kInterleaved, .has_post_norms = true}>};

}  // namespace kvasir::model
