// The buffers that a step's layers work in.
#pragma once

#include <memory>
#include <optional>

#include "backend/backend.h"
#include "model/config.h"
#include "model/model.h"
#include "model/moe_workspace.h"

namespace kvasir::model {

// Allocated once for the largest batch.
struct Workspace {
  backend::Rows own_x;     // [rows, hidden]
  backend::Rows x;         // the residual stream of the rows being run: own_x, or the caller's hidden states
  backend::Rows q, k, v;   // [rows, heads * head_dim]
  backend::Rows gate, up;  // [rows, intermediate] of dense layers
  backend::Rows y;         // [rows, hidden]: a sub-layer's output where it is normalised before the residual
  Logits logits;
  std::unique_ptr<backend::Activation> h;     // normalised hidden states
  std::unique_ptr<backend::Activation> attn;  // attention output
  std::unique_ptr<backend::Activation> ff;    // gated feed-forward
  std::unique_ptr<backend::Activation> head;  // normalised rows that want logits
  std::optional<MoeWorkspace> moe;            // of models with experts
};

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
