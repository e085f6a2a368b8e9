#include "model/layers/gated_mlp.h"

#include <fmt/format.h>

#include <string>

namespace kvasir::model {

Result<GatedMlp> load_gated_mlp(WeightLoader& loader, const ModelConfig& config, std::int32_t layer) {
  const std::string prefix = fmt::format("blk.{}.ffn_", layer);
  const std::int64_t hidden = config.hidden_size, intermediate = config.intermediate_size;
  GatedMlp mlp;
  KVASIR_TRY(mlp.norm, loader.vector(prefix + "norm.weight", hidden));
  KVASIR_TRY(mlp.gate, loader.matrix(prefix + "gate.weight", intermediate, hidden));
  KVASIR_TRY(mlp.up, loader.matrix(prefix + "up.weight", intermediate, hidden));
  KVASIR_TRY(mlp.down, loader.matrix(prefix + "down.weight", hidden, intermediate));
  return mlp;
}

void run_gated_mlp(const LayerRun& run, const GatedMlp& mlp, backend::Gate gate) {
  auto& [op, ws, config, layer] = run;
  const backend::MatmulOp gate_and_up[] = {
      {.weight = mlp.gate.get(), .out = ws.gate},
      {.weight = mlp.up.get(), .out = ws.up},
  };
  op.matmul(*ws.h, gate_and_up);
  op.gate(gate, ws.gate, ws.up, *ws.ff);
}

}  // namespace kvasir::model
