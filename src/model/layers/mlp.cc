#include "model/layers/mlp.h"

namespace kvasir::model {

Result<MlpWeights> load_mlp(WeightLoader& loader, const std::string& prefix, const ModelConfig& config) {
  MlpWeights w;
  KVASIR_TRY(w.norm, loader.vector(prefix + "ffn_norm.weight", config.hidden_size));
  KVASIR_TRY(w.gate, loader.matrix(prefix + "ffn_gate.weight", config.intermediate_size, config.hidden_size));
  KVASIR_TRY(w.up, loader.matrix(prefix + "ffn_up.weight", config.intermediate_size, config.hidden_size));
  KVASIR_TRY(w.down, loader.matrix(prefix + "ffn_down.weight", config.hidden_size, config.intermediate_size));
  return w;
}

}  // namespace kvasir::model
