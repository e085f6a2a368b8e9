#include "model/workspace.h"

#include <set>

#include "base/checked_math.h"

namespace kvasir::model {
namespace {

// Widths of the inputs of output and down projections.
std::set<std::int32_t> attention_widths(const ModelConfig& config) {
  std::set<std::int32_t> widths;
  for (const LayerGroup& group : config.layer_groups) widths.insert(config.q_size_of(group));
  return widths;
}

std::set<std::int32_t> dense_widths(const ModelConfig& config) {
  if (!config.has_dense_layers()) return {};
  if (config.layer_intermediate_sizes.empty()) return {config.intermediate_size};
  return {config.layer_intermediate_sizes.begin(), config.layer_intermediate_sizes.end()};
}

Result<Activations> make_activations(backend::Backend& backend, std::int32_t rows,
                                     const std::set<std::int32_t>& widths) {
  Activations made;
  for (const std::int32_t width : widths) {
    KVASIR_TRY(made[width], backend.make_activation(rows, width));
  }
  return made;
}

Result<PerLayerWorkspace> make_per_layer(backend::Backend& backend, const ModelConfig& config,
                                         std::int32_t rows) {
  PerLayerWorkspace ws;
  KVASIR_TRY(ws.inputs, backend.make_rows(rows, config.num_layers * config.per_layer_size));
  KVASIR_TRY(ws.gate, backend.make_rows(rows, config.per_layer_size));
  KVASIR_TRY(ws.gated, backend.make_activation(rows, config.per_layer_size));
  return ws;
}

}  // namespace

Result<Workspace> make_workspace(backend::Backend& backend, const ModelConfig& config,
                                 const WorkspaceLimits& limits) {
  const std::int32_t rows = limits.max_rows;
  Workspace ws;
  KVASIR_TRY(ws.own_x, backend.make_rows(rows, config.hidden_size));
  KVASIR_TRY(ws.y, backend.make_rows(rows, config.hidden_size));
  KVASIR_TRY(ws.q, backend.make_rows(rows, config.max_q_size()));
  KVASIR_TRY(ws.k, backend.make_rows(rows, config.max_kv_size()));
  KVASIR_TRY(ws.v, backend.make_rows(rows, config.max_kv_size()));
  if (!config.is_encoder) {
    const std::int32_t num_tiles = ceil_div(config.vocab_size, backend::kLogitsPerTile);
    KVASIR_TRY(ws.logits.rows, backend.make_rows(limits.max_logit_rows, config.vocab_size));
    KVASIR_TRY(ws.logits.tile_maxima, backend.make_rows(limits.max_logit_rows, num_tiles));
  }
  KVASIR_TRY(ws.h, backend.make_activation(rows, config.hidden_size));
  KVASIR_TRY(ws.attn, make_activations(backend, rows, attention_widths(config)));
  KVASIR_TRY(ws.head, backend.make_activation(limits.max_logit_rows, config.hidden_size));
  if (config.has_dense_layers()) {
    KVASIR_TRY(ws.gate, backend.make_rows(rows, config.intermediate_size));
    KVASIR_TRY(ws.up, backend.make_rows(rows, config.intermediate_size));
    KVASIR_TRY(ws.ff, make_activations(backend, rows, dense_widths(config)));
  }
  if (config.moe.has_experts()) {
    KVASIR_TRY(ws.moe, make_moe_workspace(backend, config.moe, config.hidden_size, rows));
  }
  if (config.per_layer_size > 0) {
    KVASIR_TRY(ws.per_layer, make_per_layer(backend, config, rows));
  }
  return ws;
}

std::int64_t input_row_bytes(std::int64_t width, const WorkspaceParts& parts) {
  constexpr std::int64_t kBlock = 32, kBlockBytes = 81;  // kernels/activation.h
  const bool is_quantized = width % kBlock == 0;
  return (is_quantized && parts.has_quantized_inputs ? width / kBlock * kBlockBytes : 0) +
         (parts.has_float_inputs || !is_quantized ? 4 * width : 0);
}

std::int64_t workspace_row_bytes(const ModelConfig& config, const WorkspaceParts& parts) {
  constexpr std::int64_t kFloat = 4;
  std::int64_t floats = 2ll * config.hidden_size + config.max_q_size() + 2ll * config.max_kv_size();
  if (config.has_dense_layers()) floats += (parts.has_gates ? 2ll : 1ll) * config.intermediate_size;
  if (config.per_layer_size > 0) floats += (config.num_layers + 1ll) * config.per_layer_size;
  std::int64_t bytes = kFloat * floats + input_row_bytes(config.hidden_size, parts);
  WorkspaceParts of_attention = parts;
  of_attention.has_float_inputs = true;  // attention writes floats
  for (const std::int32_t width : attention_widths(config)) {
    bytes += input_row_bytes(width, of_attention);
  }
  for (const std::int32_t width : dense_widths(config)) bytes += input_row_bytes(width, parts);
  if (config.per_layer_size > 0) bytes += input_row_bytes(config.per_layer_size, parts);
  return bytes + moe_workspace_row_bytes(config.moe, config.hidden_size);
}

}  // namespace kvasir::model
