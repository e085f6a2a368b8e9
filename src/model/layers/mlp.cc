#include "model/layers/mlp.h"

#include <fmt/format.h>

#include <span>
#include <string>

namespace kvasir::model {
namespace {

const float* bias_or_null(const std::vector<float>& bias) { return bias.empty() ? nullptr : bias.data(); }

Status load_separate(WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                     bool is_gated, Mlp& mlp) {
  const std::int64_t hidden = config.hidden_size, intermediate = config.intermediate_size;
  KVASIR_TRY(mlp.up, loader.matrix(prefix + "up.weight", intermediate, hidden));
  KVASIR_TRY(mlp.up_bias, loader.optional_vector(prefix + "up.bias", intermediate));
  if (!is_gated) return {};
  KVASIR_TRY(mlp.gate, loader.matrix(prefix + "gate.weight", intermediate, hidden));
  KVASIR_TRY(mlp.gate_bias, loader.optional_vector(prefix + "gate.bias", intermediate));
  return {};
}

Status load_joint(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, Mlp& mlp) {
  const std::int64_t hidden = config.hidden_size, intermediate = config.intermediate_size;
  const std::string weight = prefix + "up.weight", bias = prefix + "up.bias";
  KVASIR_TRY(mlp.gate, loader.matrix_part(weight, 0, intermediate, 2 * intermediate, hidden));
  KVASIR_TRY(mlp.up, loader.matrix_part(weight, intermediate, intermediate, 2 * intermediate, hidden));
  KVASIR_TRY(const std::vector<float> both, loader.optional_vector(bias, 2 * intermediate));
  if (both.empty()) return {};
  mlp.gate_bias.assign(both.begin(), both.begin() + intermediate);
  mlp.up_bias.assign(both.begin() + intermediate, both.end());
  return {};
}

}  // namespace

Result<Mlp> load_mlp(WeightLoader& loader, const ModelConfig& config, std::int32_t layer, MlpParts parts) {
  if (config.intermediate_size == 0) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}.feed_forward_length: missing", config.architecture));
  }
  const std::string prefix = fmt::format("blk.{}.ffn_", layer);
  Mlp mlp;
  mlp.kind = parts.kind;
  const bool is_joint = parts.is_gated && !loader.has(prefix + "gate.weight") &&
                        loader.num_rows(prefix + "up.weight") == 2 * std::int64_t{config.intermediate_size};
  KVASIR_CHECKED(is_joint ? load_joint(loader, config, prefix, mlp)
                          : load_separate(loader, config, prefix, parts.is_gated, mlp));
  KVASIR_TRY(mlp.down, loader.matrix(prefix + "down.weight", config.hidden_size, config.intermediate_size));
  KVASIR_TRY(mlp.down_bias, loader.optional_vector(prefix + "down.bias", config.hidden_size));
  return mlp;
}

void run_mlp(const LayerRun& run, const Mlp& mlp) {
  auto& [op, ws, config, layer] = run;
  const backend::MatmulOp products[] = {
      {.weight = mlp.gate.get(), .bias = bias_or_null(mlp.gate_bias), .out = ws.gate},
      {.weight = mlp.up.get(), .bias = bias_or_null(mlp.up_bias), .out = ws.up},
  };
  const bool is_gated = mlp.gate != nullptr;
  op.matmul(*ws.h, std::span(products).last(is_gated ? 2 : 1));
  if (is_gated) {
    op.gate(mlp.kind, ws.gate, ws.up, *ws.ff);
  } else {
    op.gate(mlp.kind, ws.up, {}, *ws.ff);
  }
}

backend::MatmulOp mlp_output(const Mlp& mlp) {
  return {.weight = mlp.down.get(), .bias = bias_or_null(mlp.down_bias)};
}

}  // namespace kvasir::model
