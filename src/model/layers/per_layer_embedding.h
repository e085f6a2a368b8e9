// Per-layer embeddings (Gemma 3n and 4, Gemma Team 2025): each layer mixes a small embedding of its own of the
// token into the residual stream. Their table has a row of all layers' for each token; it is looked up in the
// file, and never packed.
#pragma once

#include <memory>
#include <vector>

#include "model/config.h"
#include "model/layers/norm.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

// The name of the table. It stays mapped, as the table of embeddings does.
inline constexpr const char* kPerLayerTable = "per_layer_token_embd.weight";

// What all layers' embeddings are made of: the table's row, and a projection of the embedding.
struct PerLayerInputs {
  const TensorView* table = nullptr;            // [vocab_size, layers * per_layer_size]
  std::unique_ptr<backend::Matrix> projection;  // [layers * per_layer_size, hidden]
  std::vector<float> norm;                      // [per_layer_size]
};

// One layer's.
struct PerLayerEmbedding {
  std::unique_ptr<backend::Matrix> gate;        // [per_layer_size, hidden]
  std::unique_ptr<backend::Matrix> projection;  // [hidden, per_layer_size]
  Norm post_norm;
};

// Tensors per_layer_*. Requires, as below: config.per_layer_size > 0.
Result<PerLayerInputs> load_per_layer_inputs(WeightLoader& loader, const ModelConfig& config);

// Makes ws.per_layer->inputs of the embedded rows ws.x.
void run_per_layer_inputs(const LayerRun& run, const PerLayerInputs& inputs);

// Tensors blk.N.inp_gate, proj and post_norm.
Result<PerLayerEmbedding> load_per_layer_embedding(WeightLoader& loader, const ModelConfig& config,
                                                   std::int32_t layer);

// ws.x = scale * (ws.x + norm(W (gelu(G ws.x) * the layer's input))).
void mix_per_layer_embedding(const LayerRun& run, const PerLayerEmbedding& embedding, float scale);

}  // namespace kvasir::model
