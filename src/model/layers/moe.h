// The mixture-of-experts sub-layer (Shazeer et al. 2017; Fedus et al. 2021): its weights and its run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/config.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

// Gate, up or down of every expert. The bias is empty where there is none.
struct ExpertMatrix {
  std::unique_ptr<backend::Matrix> weight;  // [experts * outputs, inputs]
  std::vector<float> bias;                  // [experts * outputs]

  backend::ExpertProjection projection() const {
    return {.weight = weight.get(), .bias = bias.empty() ? nullptr : bias.data()};
  }
};

// The expert that every row goes to.
struct SharedExpert {
  std::unique_ptr<backend::Matrix> gate, up, down;
  std::unique_ptr<backend::Matrix> weight;  // [1, hidden]: its output counts by the sigmoid; null: in full
};

// One layer's.
struct Moe {
  std::unique_ptr<backend::Matrix> router;  // [experts, hidden]
  std::vector<float> router_bias;           // [experts] or empty
  std::vector<float> choice_bias;           // [experts] or empty, as backend::RouteOp has it
  ExpertMatrix gate, up, down;              // `up` is null where `gate` has both, expert by expert
  std::optional<SharedExpert> shared;
  backend::Gate activation = backend::Gate::kSilu;
};

// The parts in which families differ.
struct MoeParts {
  bool biases = false;         // of the router and the experts
  bool choice_bias = false;    // exp_probs_b
  bool shared_weight = false;  // ffn_gate_inp_shexp
  backend::Gate activation = backend::Gate::kSilu;
};

// Tensors blk.N.ffn_gate_inp, ffn_{gate,up,down}_exps or ffn_gate_up_exps and ffn_*_shexp; also the files of 2023,
// which have a tensor for each expert, ffn_{gate,up,down}.E. Without the norm before it.
Result<Moe> load_moe(WeightLoader& loader, const ModelConfig& config, std::int32_t layer,
                     MoeParts parts = {});

// Adds the mixture of the rows ws.h to ws.x, times ModelConfig::residual_scale.
void run_moe(const LayerRun& run, const Moe& moe);

// The two halves of it where the router reads other rows than the experts, without a shared expert: by the rows
// ws.h each row gets its experts;
void route_rows(const LayerRun& run, const Moe& moe);
// and the mixture of the rows ws.h becomes `out`.
void mix_experts(const LayerRun& run, const Moe& moe, backend::Rows out);

}  // namespace kvasir::model
