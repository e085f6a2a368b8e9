#include "model/layers/norm.h"

namespace kvasir::model {

Result<Norm> load_norm(WeightLoader& loader, const std::string& name, backend::NormKind kind,
                       std::int64_t width, float eps) {
  Norm norm{.kind = kind, .weight = {}, .bias = {}, .eps = eps};
  KVASIR_TRY(norm.weight, loader.vector(name + ".weight", width));
  if (kind == backend::NormKind::kLayer) {
    KVASIR_TRY(norm.bias, loader.optional_vector(name + ".bias", width));
    norm.bias.resize(static_cast<std::size_t>(width));
  }
  return norm;
}

}  // namespace kvasir::model
