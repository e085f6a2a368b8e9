#include "model/layers/mlp.h"

#include <fmt/format.h>

#include <span>
#include <string>

namespace kvasir::model {
namespace {

const float* bias_or_null(const std::vector<float>& bias) { return bias.empty() ? nullptr : bias.data(); }

// Sizes of one layer's, and where its tensors are.
struct MlpSource {
  WeightLoader& loader;
  std::string prefix;  // "blk.N.ffn_"
  std::int64_t hidden = 0, intermediate = 0;
};

Status load_separate(const MlpSource& from, bool is_gated, Mlp& mlp) {
  auto& [loader, prefix, hidden, intermediate] = from;
  KVASIR_TRY(mlp.up, loader.matrix(prefix + "up.weight", intermediate, hidden));
  KVASIR_TRY(mlp.up_bias, loader.optional_vector(prefix + "up.bias", intermediate));
  if (!is_gated) return {};
  KVASIR_TRY(mlp.gate, loader.matrix(prefix + "gate.weight", intermediate, hidden));
  KVASIR_TRY(mlp.gate_bias, loader.optional_vector(prefix + "gate.bias", intermediate));
  return {};
}

Status load_joint(const MlpSource& from, Mlp& mlp) {
  auto& [loader, prefix, hidden, intermediate] = from;
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
  const MlpSource from = {.loader = loader,
                          .prefix = fmt::format("blk.{}.ffn_", layer),
                          .hidden = config.hidden_size,
                          .intermediate = config.intermediate_size_of(layer)};
  Mlp mlp;
  mlp.kind = parts.kind;
  const bool is_joint = parts.is_gated && !loader.has(from.prefix + "gate.weight") &&
                        loader.num_rows(from.prefix + "up.weight") == 2 * from.intermediate;
  if (parts.is_gated) loader.count_gates();
  KVASIR_CHECKED(is_joint ? load_joint(from, mlp) : load_separate(from, parts.is_gated, mlp));
  KVASIR_TRY(mlp.down, loader.matrix(from.prefix + "down.weight", from.hidden, from.intermediate));
  KVASIR_TRY(mlp.down_bias, loader.optional_vector(from.prefix + "down.bias", from.hidden));
  return mlp;
}

void run_mlp(const LayerRun& run, const Mlp& mlp) {
  auto& [op, ws, config, layer] = run;
  const std::int64_t width = mlp.down->row_length;
  const backend::Rows gate = columns(ws.gate, width), up = columns(ws.up, width);
  const backend::MatmulOp products[] = {
      {.weight = mlp.gate.get(), .bias = bias_or_null(mlp.gate_bias), .out = gate},
      {.weight = mlp.up.get(), .bias = bias_or_null(mlp.up_bias), .out = up},
  };
  const bool is_gated = mlp.gate != nullptr;
  op.matmul(*ws.h, std::span(products).last(is_gated ? 2 : 1));
  if (is_gated) {
    op.gate(mlp.kind, gate, up, *ws.ff.at(width));
  } else {
    op.gate(mlp.kind, up, {}, *ws.ff.at(width));
  }
}

const backend::Activation& mlp_rows(const LayerRun& run, const Mlp& mlp) {
  return *run.ws.ff.at(mlp.down->row_length);
}

backend::MatmulOp mlp_output(const Mlp& mlp) {
  return {.weight = mlp.down.get(), .bias = bias_or_null(mlp.down_bias)};
}

}  // namespace kvasir::model
