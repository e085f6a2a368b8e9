#include "model/moe_workspace.h"

#include <algorithm>

namespace kvasir::model {

Result<MoeWorkspace> make_moe_workspace(backend::Backend& backend, const MoeConfig& moe,
                                        std::int32_t hidden_size, std::int32_t max_rows) {
  MoeWorkspace ws;
  KVASIR_TRY(ws.logits, backend.make_rows(max_rows, moe.rule.num_experts));
  KVASIR_TRY(ws.experts, backend.make_expert_rows({.max_rows = max_rows,
                                                   .num_experts = moe.rule.num_experts,
                                                   .num_used = moe.rule.num_used,
                                                   .hidden_size = hidden_size,
                                                   .intermediate_size = moe.intermediate_size}));
  if (moe.is_beside_dense) {
    KVASIR_TRY(ws.sum, backend.make_rows(max_rows, hidden_size));
  }
  if (moe.shared_intermediate_size == 0) return ws;
  KVASIR_TRY(ws.shared_gate, backend.make_rows(max_rows, moe.shared_intermediate_size));
  KVASIR_TRY(ws.shared_up, backend.make_rows(max_rows, moe.shared_intermediate_size));
  KVASIR_TRY(ws.shared_weight, backend.make_rows(max_rows, 1));
  KVASIR_TRY(ws.shared_ff, backend.make_activation(max_rows, moe.shared_intermediate_size));
  return ws;
}

std::int64_t moe_workspace_row_bytes(const MoeConfig& moe, std::int32_t hidden_size) {
  if (!moe.has_experts()) return 0;
  constexpr std::int64_t kFloat = 4;
  // Inputs of matmuls are bytes with a scale, sums and outliers for every 32, and floats where a matrix reads
  // those: twice a float will do for the sum of both.
  const std::int64_t products = std::max<std::int64_t>(2 * moe.intermediate_size, hidden_size);
  const std::int64_t inputs = std::int64_t{hidden_size} + moe.intermediate_size;
  const std::int64_t shared = 4ll * moe.shared_intermediate_size;
  const std::int64_t sum = moe.is_beside_dense ? hidden_size : 0;
  return kFloat * (moe.rule.num_used * (products + inputs) + shared + moe.rule.num_experts + sum);
}

}  // namespace kvasir::model
