// The ops of a mixture of experts: rows go to a few experts each, and their outputs are added up.
#pragma once

#include <cstdint>

#include "backend/routing.h"
#include "backend/tensors.h"

namespace kvasir::backend {

enum class Gate : std::uint8_t;  // backend.h

// The largest step that a model's mixture layers run.
struct ExpertShape {
  std::int32_t max_rows = 0;
  std::int32_t num_experts = 0;
  std::int32_t num_used = 0;           // by each row
  std::int32_t hidden_size = 0;        // inputs and outputs of an expert
  std::int32_t intermediate_size = 0;  // of an expert
};

// A step's rows by expert, with the memory that the experts work in. One serves every layer in turn.
class ExpertRows {
 public:
  virtual ~ExpertRows() = default;
};

struct RouteOp {
  Rows logits;  // [rows, num_experts]
  RoutingRule rule;
  const float* choice_bias = nullptr;  // [num_experts] or null, as route_row() has it
};

// One projection of every expert: a matrix with the rows of expert 0, of expert 1 and so on.
struct ExpertProjection {
  const Matrix* weight = nullptr;  // MatrixUse::kExperts
  const float* bias = nullptr;     // [num_experts, outputs] or null
};

struct ExpertMlpOp {
  ExpertProjection gate;  // with `up` empty: the rows of gate and up of each expert, one after the other
  ExpertProjection up;
  ExpertProjection down;
  Gate activation = {};
  float scale = 1.0f;     // of the sum
  bool replaces = false;  // what the rows had, instead of adding to it
};

}  // namespace kvasir::backend
