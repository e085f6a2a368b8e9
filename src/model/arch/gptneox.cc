// Layer norms, biases and no gate: GPT-NeoX and Pythia (Black et al. 2022, Biderman et al. 2023), StarCoder2
// (Lozhkov et al. 2024).
#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

Status configure_gptneox(const io::WeightSource& source, ModelConfig& config) {
  KVASIR_TRY(const auto is_parallel, source.metadata().find_bool("gptneox.use_parallel_residual"));
  config.has_parallel_residual = is_parallel.value_or(true);
  return {};
}

Status configure_starcoder2(const io::WeightSource& source, ModelConfig& config) {
  return split_windows(source, {.period = WindowPattern::kEveryLayer}, config);
}

}  // namespace

const Architecture kGptNeoX = {"gptneox",
                               configure_gptneox,
                               load_dense<{.norm = backend::NormKind::kLayer,
                                           .mlp = {.kind = backend::Gate::kGeluErf, .is_gated = false}}>,
                               {"use_parallel_residual"}};
const Architecture kStarCoder2 = {"starcoder2", configure_starcoder2,
                                  load_dense<{.norm = backend::NormKind::kLayer,
                                              .mlp = {.kind = backend::Gate::kGeluTanh, .is_gated = false}}>};

}  // namespace kvasir::model
