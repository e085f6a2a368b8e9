#include "model/workspace.h"

#include "base/checked_math.h"

namespace kvasir::model {

Result<Workspace> make_workspace(backend::Backend& backend, const ModelConfig& config,
                                 const WorkspaceLimits& limits) {
  const std::int32_t rows = limits.max_rows;
  Workspace ws;
  KVASIR_TRY(ws.own_x, backend.make_rows(rows, config.hidden_size));
  KVASIR_TRY(ws.y, backend.make_rows(rows, config.hidden_size));
  KVASIR_TRY(ws.q, backend.make_rows(rows, config.q_size()));
  KVASIR_TRY(ws.k, backend.make_rows(rows, config.kv_size()));
  KVASIR_TRY(ws.v, backend.make_rows(rows, config.kv_size()));
  const std::int32_t num_tiles = ceil_div(config.vocab_size, backend::kLogitsPerTile);
  KVASIR_TRY(ws.logits.rows, backend.make_rows(limits.max_logit_rows, config.vocab_size));
  KVASIR_TRY(ws.logits.tile_maxima, backend.make_rows(limits.max_logit_rows, num_tiles));
  KVASIR_TRY(ws.h, backend.make_activation(rows, config.hidden_size));
  KVASIR_TRY(ws.attn, backend.make_activation(rows, config.q_size()));
  KVASIR_TRY(ws.head, backend.make_activation(limits.max_logit_rows, config.hidden_size));
  if (config.has_dense_layers()) {
    KVASIR_TRY(ws.gate, backend.make_rows(rows, config.intermediate_size));
    KVASIR_TRY(ws.up, backend.make_rows(rows, config.intermediate_size));
    KVASIR_TRY(ws.ff, backend.make_activation(rows, config.intermediate_size));
  }
  if (config.moe.has_experts()) {
    KVASIR_TRY(ws.moe, make_moe_workspace(backend, config.moe, config.hidden_size, rows));
  }
  return ws;
}

}  // namespace kvasir::model
