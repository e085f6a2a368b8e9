// The buffers that a step's mixture-of-experts layers work in.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "model/moe_config.h"

namespace kvasir::model {

// Allocated once for the largest batch. Those of the shared expert are empty where there is none.
struct MoeWorkspace {
  backend::Rows logits;                            // [rows, experts]: the router's
  std::unique_ptr<backend::ExpertRows> experts;    // the rows by expert
  backend::Rows shared_gate, shared_up;            // [rows, shared intermediate]
  backend::Rows shared_weight;                     // [rows, 1]
  std::unique_ptr<backend::Activation> shared_ff;  // [rows, shared intermediate]
  backend::Rows sum;  // [rows, hidden]: of experts and the dense network beside them
};

// Requires: moe.has_experts(). Errors: kMachine.
Result<MoeWorkspace> make_moe_workspace(backend::Backend& backend, const MoeConfig& moe,
                                        std::int32_t hidden_size, std::int32_t max_rows);

// Bytes that it takes of each row of the largest batch; 0 without experts.
std::int64_t moe_workspace_row_bytes(const MoeConfig& moe, std::int32_t hidden_size);

}  // namespace kvasir::model
