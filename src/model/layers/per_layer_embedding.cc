#include "model/layers/per_layer_embedding.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <string>

#include "model/layers/residual.h"

namespace kvasir::model {
namespace {

// Half of the square of the sum of two numbers of variance 1 has variance 1.
constexpr float kMeanFactor = 1.0f / std::numbers::sqrt2_v<float>;

// A matmul reads the rows as they are.
void take_rows(const LayerRun& run) { run.op.norm(run.ws.x, {}, *run.ws.h); }

}  // namespace

Result<PerLayerInputs> load_per_layer_inputs(WeightLoader& loader, const ModelConfig& config) {
  const std::int64_t width = std::int64_t{config.num_layers} * config.per_layer_size;
  PerLayerInputs inputs;
  KVASIR_TRY(inputs.table, loader.view(kPerLayerTable, config.vocab_size, width));
  KVASIR_TRY(inputs.projection, loader.matrix("per_layer_model_proj.weight", width, config.hidden_size));
  KVASIR_TRY(inputs.norm, loader.vector("per_layer_proj_norm.weight", config.per_layer_size));
  for (float& weight : inputs.norm) weight *= kMeanFactor;
  return inputs;
}

// Both parts are scaled, added up and scaled again; here each has its factor. That of the projection, the root
// of 1 / hidden, goes away in the norm but for its epsilon.
void run_per_layer_inputs(const LayerRun& run, const PerLayerInputs& inputs) {
  auto& [op, ws, config, layer] = run;
  take_rows(run);
  const backend::MatmulOp product[] = {{.weight = inputs.projection.get(), .out = ws.per_layer->inputs}};
  op.matmul(*ws.h, product);
  op.embed_parts({.table = inputs.table,
                  .scale = std::sqrt(static_cast<float>(config.per_layer_size)) * kMeanFactor,
                  .weight = inputs.norm,
                  .eps = config.norm_eps * static_cast<float>(config.hidden_size),
                  .x = ws.per_layer->inputs});
}

Result<PerLayerEmbedding> load_per_layer_embedding(WeightLoader& loader, const ModelConfig& config,
                                                   std::int32_t layer) {
  const std::string prefix = fmt::format("blk.{}.", layer);
  PerLayerEmbedding embedding;
  KVASIR_TRY(embedding.gate, loader.matrix(prefix + "inp_gate.weight", config.per_layer_size, config.hidden_size));
  KVASIR_TRY(embedding.projection,
             loader.matrix(prefix + "proj.weight", config.hidden_size, config.per_layer_size));
  KVASIR_TRY(embedding.post_norm, load_norm(loader, prefix + "post_norm", backend::NormKind::kRms,
                                            config.hidden_size, config.norm_eps));
  return embedding;
}

void mix_per_layer_embedding(const LayerRun& run, const PerLayerEmbedding& embedding, float scale) {
  auto& [op, ws, config, layer] = run;
  PerLayerWorkspace& rows = *ws.per_layer;
  take_rows(run);
  const backend::MatmulOp product[] = {{.weight = embedding.gate.get(), .out = rows.gate}};
  op.matmul(*ws.h, product);
  backend::Rows input = columns(rows.inputs, config.per_layer_size);
  input.data += std::int64_t{layer} * config.per_layer_size;
  op.gate(backend::Gate::kGeluTanh, rows.gate, input, *rows.gated);
  add_to_residual(run, *rows.gated, {.weight = embedding.projection.get()}, embedding.post_norm, scale);
}

}  // namespace kvasir::model
