// A sub-layer's addition to the residual stream.
#pragma once

#include "backend/backend.h"
#include "model/layers/norm.h"
#include "model/workspace.h"

namespace kvasir::model {

// ws.x += norm(W in + bias), or the same without a norm, times ModelConfig::residual_scale. Where `product`
// goes is not read. With a norm ws.x may be multiplied by `scale` afterwards. Requires: a norm is kRms, and
// residual_scale is then 1.
void add_to_residual(const LayerRun& run, const backend::Activation& in, backend::MatmulOp product,
                     const Norm& norm = {}, float scale = 1.0f);

}  // namespace kvasir::model
