// The gated feed-forward sub-layer, down(gate(W x) * (V x)) (Shazeer 2020): its weights and its run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/config.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

// One layer's.
struct GatedMlp {
  std::vector<float> norm;  // [hidden]
  std::unique_ptr<backend::Matrix> gate, up, down;
};

// Tensors blk.N.ffn_*.
Result<GatedMlp> load_gated_mlp(WeightLoader& loader, const ModelConfig& config, std::int32_t layer);

// The rows ws.h, gated, into ws.ff; without the down projection.
void run_gated_mlp(const LayerRun& run, const GatedMlp& mlp, backend::Gate gate);

}  // namespace kvasir::model
