#include "model/layers/moe.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "model/layers/residual.h"

namespace kvasir::model {
namespace {

// Every expert's matrix of `outputs` rows as one: the tensor `prefix`NAME_exps, or one tensor an expert.
Result<std::unique_ptr<backend::Matrix>> load_experts(WeightLoader& loader, const MoeConfig& moe,
                                                      const std::string& prefix, const char* name,
                                                      std::int64_t outputs, std::int64_t inputs) {
  const std::int32_t num_experts = moe.rule.num_experts;
  const std::string together = fmt::format("{}{}_exps.weight", prefix, name);
  if (outputs % backend::kRowsPerGroup != 0) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("tensor {}: an expert must have a multiple of {} rows, has {}", together,
                                  backend::kRowsPerGroup, outputs));
  }
  std::vector<std::string> apart;
  for (std::int32_t e = 0; e < num_experts; ++e) {
    apart.push_back(fmt::format("{}{}.{}.weight", prefix, name, e));
  }
  if (!loader.has(together) && loader.has(apart.front())) {
    return loader.stacked_matrix(apart, outputs, inputs, backend::MatrixUse::kExperts);
  }
  return loader.matrix(together, num_experts * outputs, inputs, backend::MatrixUse::kExperts);
}

Status load_biases(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, Moe& moe) {
  const std::int64_t n = config.moe.rule.num_experts, width = config.moe.intermediate_size;
  KVASIR_TRY(moe.router_bias, loader.vector(prefix + "gate_inp.bias", n));
  KVASIR_TRY(moe.down.bias, loader.table(prefix + "down_exps.bias", n, config.hidden_size));
  if (moe.up.weight == nullptr) {
    KVASIR_TRY(moe.gate.bias, loader.table(prefix + "gate_up_exps.bias", n, 2 * width));
    return {};
  }
  KVASIR_TRY(moe.gate.bias, loader.table(prefix + "gate_exps.bias", n, width));
  KVASIR_TRY(moe.up.bias, loader.table(prefix + "up_exps.bias", n, width));
  return {};
}

Result<SharedExpert> load_shared(WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                                 bool has_weight) {
  const std::int64_t hidden = config.hidden_size, width = config.moe.shared_intermediate_size;
  SharedExpert shared;
  KVASIR_TRY(shared.gate, loader.matrix(prefix + "gate_shexp.weight", width, hidden));
  KVASIR_TRY(shared.up, loader.matrix(prefix + "up_shexp.weight", width, hidden));
  KVASIR_TRY(shared.down, loader.matrix(prefix + "down_shexp.weight", hidden, width));
  if (has_weight) {
    KVASIR_TRY(shared.weight, loader.matrix(prefix + "gate_inp_shexp.weight", 1, hidden));
  }
  return shared;
}

// The router and what the shared expert has for the same rows, as one op.
void run_first_matmuls(const LayerRun& run, const Moe& moe) {
  auto& [op, ws, config, layer] = run;
  std::array<backend::MatmulOp, 4> ops;
  std::size_t count = 0;
  ops[count++] = {.weight = moe.router.get(),
                  .bias = moe.router_bias.empty() ? nullptr : moe.router_bias.data(),
                  .out = ws.moe->logits};
  if (moe.shared) {
    ops[count++] = {.weight = moe.shared->gate.get(), .out = ws.moe->shared_gate};
    ops[count++] = {.weight = moe.shared->up.get(), .out = ws.moe->shared_up};
    if (moe.shared->weight != nullptr) {
      ops[count++] = {.weight = moe.shared->weight.get(), .out = ws.moe->shared_weight};
    }
  }
  op.matmul(*ws.h, {ops.data(), count});
}

void add_shared(const LayerRun& run, const Moe& moe) {
  auto& [op, ws, config, layer] = run;
  op.gate(moe.activation, ws.moe->shared_gate, ws.moe->shared_up, *ws.moe->shared_ff);
  const backend::MatmulOp down[] = {{.weight = moe.shared->down.get(), .out = ws.y}};
  if (moe.shared->weight == nullptr) {
    add_to_residual(run, *ws.moe->shared_ff, down[0]);
    return;
  }
  op.matmul(*ws.moe->shared_ff, down);
  op.add_gated(ws.moe->shared_weight, ws.y, config.residual_scale, ws.x);
}

void choose_experts(const LayerRun& run, const Moe& moe) {
  run.op.route({.logits = run.ws.moe->logits,
                .rule = run.config.moe.rule,
                .choice_bias = moe.choice_bias.empty() ? nullptr : moe.choice_bias.data()},
               *run.ws.moe->experts);
}

backend::ExpertMlpOp expert_op(const Moe& moe) {
  return {.gate = moe.gate.projection(),
          .up = moe.up.projection(),
          .down = moe.down.projection(),
          .activation = moe.activation};
}

}  // namespace

Result<Moe> load_moe(WeightLoader& loader, const ModelConfig& config, std::int32_t layer, MoeParts parts) {
  const std::string prefix = fmt::format("blk.{}.ffn_", layer);
  const std::int64_t hidden = config.hidden_size, width = config.moe.intermediate_size;
  Moe moe;
  moe.activation = parts.activation;
  KVASIR_TRY(moe.router, loader.matrix(prefix + "gate_inp.weight", config.moe.rule.num_experts, hidden));
  if (loader.has(prefix + "gate_up_exps.weight")) {
    KVASIR_TRY(moe.gate.weight, load_experts(loader, config.moe, prefix, "gate_up", 2 * width, hidden));
  } else {
    KVASIR_TRY(moe.gate.weight, load_experts(loader, config.moe, prefix, "gate", width, hidden));
    KVASIR_TRY(moe.up.weight, load_experts(loader, config.moe, prefix, "up", width, hidden));
  }
  KVASIR_TRY(moe.down.weight, load_experts(loader, config.moe, prefix, "down", hidden, width));
  if (parts.biases) KVASIR_CHECKED(load_biases(loader, config, prefix, moe));
  if (parts.choice_bias) {
    KVASIR_TRY(moe.choice_bias,
               loader.vector(fmt::format("blk.{}.exp_probs_b.bias", layer), config.moe.rule.num_experts));
  }
  if (config.moe.shared_intermediate_size > 0) {
    KVASIR_TRY(moe.shared, load_shared(loader, config, prefix, parts.shared_weight));
  }
  return moe;
}

void run_moe(const LayerRun& run, const Moe& moe) {
  auto& [op, ws, config, layer] = run;
  run_first_matmuls(run, moe);
  choose_experts(run, moe);
  backend::ExpertMlpOp experts = expert_op(moe);
  experts.scale = config.residual_scale;
  op.add_experts(experts, *ws.h, *ws.moe->experts, ws.x);
  if (moe.shared) add_shared(run, moe);
}

void route_rows(const LayerRun& run, const Moe& moe) {
  run_first_matmuls(run, moe);
  choose_experts(run, moe);
}

void mix_experts(const LayerRun& run, const Moe& moe, backend::Rows out) {
  backend::ExpertMlpOp experts = expert_op(moe);
  experts.replaces = true;
  run.op.add_experts(experts, *run.ws.h, *run.ws.moe->experts, out);
}

}  // namespace kvasir::model
