// Granite 3 and 4 without state layers: the Llama shape with factors on embeddings, residuals, attention and
// logits (IBM 2024).
#include "model/arch/granite.h"

#include "model/arch/dense.h"

namespace kvasir::model {

Status configure_granite(const io::WeightSource& source, ModelConfig& config) {
  config.logit_scale = 1.0f / config.logit_scale;  // these files hold a divisor
  KVASIR_TRY(const auto turns, source.metadata().find_bool(config.architecture + ".rope.scaling.finetuned"));
  if (!turns.value_or(true)) config.rope.rotary_dim = 0;
  return {};
}

const Architecture kGranite = {"granite", configure_granite,
                               load_dense<{.rope = backend::RopeStyle::kInterleaved}>};

}  // namespace kvasir::model
