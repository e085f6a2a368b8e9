// The parts that the Granite families share.
#pragma once

#include "model/config.h"

namespace kvasir::model {

// Architecture::configure: the divisor of logits, and RoPE that a file may do without.
Status configure_granite(const io::WeightSource& source, ModelConfig& config);

}  // namespace kvasir::model
