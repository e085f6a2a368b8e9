// The feed-forward sub-layer: down(gate(W x) * (V x)) (Shazeer 2020), or down(gate(V x)) without a gate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/config.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

// One layer's. Empty vectors are biases that the file does not have.
struct Mlp {
  std::unique_ptr<backend::Matrix> gate, up, down;  // gate: null where there is none
  std::vector<float> gate_bias, up_bias, down_bias;
  backend::Gate kind = backend::Gate::kSilu;
};

struct MlpParts {
  backend::Gate kind = backend::Gate::kSilu;
  bool is_gated = true;
};

// Tensors blk.N.ffn_*: gate and up as two, or as one `up` with these rows in turn.
Result<Mlp> load_mlp(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                     MlpParts parts = {});

// The rows ws.h, activated, into mlp_rows(); without the down projection.
void run_mlp(const LayerRun& run, const Mlp& mlp);

// That of the workspace's activations that run_mlp() writes.
const backend::Activation& mlp_rows(const LayerRun& run, const Mlp& mlp);

// The down projection, of mlp_rows(); where it goes is for the caller to say.
backend::MatmulOp mlp_output(const Mlp& mlp);

}  // namespace kvasir::model
