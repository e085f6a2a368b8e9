// Normalisations of the residual stream and of a sub-layer's output: their weights.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "model/weight_loader.h"

namespace kvasir::model {

// Without weights the rows stay as they are.
struct Norm {
  backend::NormKind kind = backend::NormKind::kNone;
  std::vector<float> weight, bias;  // [width]
  float eps = 0.0f;

  backend::Norm op() const { return {.kind = kind, .weight = weight, .bias = bias, .eps = eps}; }
};

// Tensors NAME.weight and, of a layer norm that has one, NAME.bias. Requires: kind is not kNone.
Result<Norm> load_norm(WeightLoader& loader, const std::string& name, backend::NormKind kind,
                       std::int64_t width, float eps);

}  // namespace kvasir::model
