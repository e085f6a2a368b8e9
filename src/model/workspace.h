// The buffers that a step's layers work in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "backend/backend.h"
#include "model/config.h"
#include "model/model.h"
#include "model/moe_workspace.h"

namespace kvasir::model {

// Inputs of matmuls by their width.
using Activations = std::map<std::int64_t, std::unique_ptr<backend::Activation>>;

// Of per-layer embeddings.
struct PerLayerWorkspace {
  backend::Rows inputs;                        // [rows, layers * per_layer_size]: what each layer mixes in
  backend::Rows gate;                          // [rows, per_layer_size]
  std::unique_ptr<backend::Activation> gated;  // likewise
};

// Allocated once for the largest batch.
struct Workspace {
  backend::Rows own_x;     // [rows, hidden]
  backend::Rows x;         // the residual stream of the rows being run: own_x, or the caller's hidden states
  backend::Rows q, k, v;   // [rows, heads * head_dim] of the widest layer
  backend::Rows gate, up;  // [rows, intermediate] of the widest dense layer
  backend::Rows y;         // [rows, hidden]: a sub-layer's output where it is normalised before the residual
  Logits logits;
  std::unique_ptr<backend::Activation> h;     // normalised hidden states
  Activations attn;                           // attention output
  Activations ff;                             // gated feed-forward
  std::unique_ptr<backend::Activation> head;  // normalised rows that want logits
  std::optional<MoeWorkspace> moe;            // of models with experts
  std::optional<PerLayerWorkspace> per_layer;
};

// The first columns of each row.
inline backend::Rows columns(backend::Rows rows, std::int64_t width) {
  rows.width = static_cast<std::int32_t>(width);
  return rows;
}

// The parts of a workspace that a model touches, by its weights.
struct WorkspaceParts {
  bool has_quantized_inputs = true;  // some matrix takes its inputs in blocks
  bool has_float_inputs = true;      // some matrix takes its inputs as floats
  bool has_gates = true;             // some dense layer is gated
};

// A row of a matmul's input: quantised (81 bytes for 32 inputs), and as floats.
std::int64_t input_row_bytes(std::int64_t width, const WorkspaceParts& parts);

// Bytes that make_workspace() takes of each row of the largest batch.
std::int64_t workspace_row_bytes(const ModelConfig& config, const WorkspaceParts& parts);

// Errors: kMachine.
Result<Workspace> make_workspace(backend::Backend& backend, const ModelConfig& config,
                                 const WorkspaceLimits& limits);

// One layer of one step, for the sub-layers in layers/. Borrows everything for the call.
struct LayerRun {
  backend::Backend& op;  // plan() has been called
  Workspace& ws;
  const ModelConfig& config;
  std::int32_t layer = 0;

  bool is_last() const { return layer + 1 == config.num_layers; }
};

}  // namespace kvasir::model
