#include "model/layers/residual.h"

#include "base/check.h"

namespace kvasir::model {

void add_to_residual(const LayerRun& run, const backend::Activation& in, backend::MatmulOp product,
                     const Norm& norm, float scale) {
  auto& [op, ws, config, layer] = run;
  const bool is_plain = norm.kind == backend::NormKind::kNone;
  if (is_plain && config.residual_scale == 1.0f && product.weight->scales.empty()) {
    product.out = ws.x;
    op.matmul_add(in, product);
    return;
  }
  product.out = ws.y;
  op.matmul(in, {&product, 1});
  if (is_plain) {
    op.add(ws.y, config.residual_scale, ws.x);
    return;
  }
  CHECK(norm.kind == backend::NormKind::kRms && config.residual_scale == 1.0f);
  op.norm_add({.y = ws.y, .weight = norm.weight, .eps = norm.eps, .x = ws.x, .scale = scale});
}

}  // namespace kvasir::model
