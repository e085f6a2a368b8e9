// The weights of one gated feed-forward sub-layer: down(act(gate x) * up x) (Shazeer 2020).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace kvasir::model {

struct MlpWeights {
  std::vector<float> norm;  // [hidden]
  std::unique_ptr<backend::Matrix> gate, up, down;
};

Result<MlpWeights> load_mlp(WeightLoader& loader, const std::string& prefix, const ModelConfig& config);

}  // namespace kvasir::model
