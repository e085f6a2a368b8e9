// The settings of an engine that runs an encoder.
#pragma once

#include "kvasir/engine.h"

namespace kvasir {

// `config` with what applies to an encoder. A text runs whole in one step, and no other step reads its keys and
// values: they are kept as float32 for the texts of one step, and nothing is cached or made coarser. Many short texts
// share a step, so there are seats for them. Requires: max_num_batched_tokens is set.
EngineConfig encoder_config(EngineConfig config);

}  // namespace kvasir
