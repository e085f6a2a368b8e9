// How far the distributions of two arms are apart along a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/gate/gate_arm.h"

namespace kvasir::eval {

// A text, and the positions of it that count: the logits behind each predict the next token.
struct ScoredText {
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> positions;  // rising, none the last of the text
  std::int32_t policy_acts_at = 0;      // as ArmQuestion's
  std::int32_t num_tasks = 0;           // that it solves
};

struct ArmDivergence {
  double kl = 0.0;                          // mean, of the changed arm from the reference
  double top1 = 0.0;                        // share of positions with the same most likely token
  double nll = 0.0, reference_nll = 0.0;    // mean in nats, of all positions' next tokens
  double bytes_share = 1.0;                 // of the changed arm's KV, as Usage
};

// Divergence and agreement are of every `stride`-th position, whose logits are kept meanwhile. Requires: there are
// positions. Errors: as GateArm::score.
Result<ArmDivergence> compare_arms(const GateArms& arms, const ScoredText& text, std::int32_t stride);

}  // namespace kvasir::eval
