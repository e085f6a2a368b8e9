// The numbers of a model's mixture-of-experts layers, as its keys <architecture>.expert_* have them.
#pragma once

#include <cstdint>
#include <string>

#include "backend/experts.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::model {

struct MoeConfig {
  backend::RoutingRule rule;                  // num_experts 0: every layer is dense
  std::int32_t intermediate_size = 0;         // of an expert
  std::int32_t shared_intermediate_size = 0;  // of the expert that every row goes to; 0: there is none
  std::int32_t num_leading_dense_layers = 0;
  bool is_beside_dense = false;  // each layer has a dense network too, of the same rows

  bool has_experts() const { return rule.num_experts > 0; }
  bool has_experts(std::int32_t layer) const { return has_experts() && layer >= num_leading_dense_layers; }
};

// How a family routes where its file does not say.
struct MoeDefaults {
  backend::RouterScore score = backend::RouterScore::kSoftmax;
  bool renormalizes = true;
  bool has_shared_expert = false;
};

// Reads a mixture's keys under `prefix`, "<architecture>."; without expert_count there is none. Errors: kBadFile
// naming the key, the limit and the value.
Result<MoeConfig> read_moe_config(const io::Metadata& metadata, const std::string& prefix,
                                  const MoeDefaults& defaults);

}  // namespace kvasir::model
