// The first layer of the gate: what a change costs on plain text.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/gate/arm_divergence.h"
#include "eval/gate/gate_check.h"

namespace kvasir::eval {

struct BasicLimits {
  double kl = 0.01;           // nats
  double ratio_high = 1.02;   // upper end of the interval of the perplexity ratio
  double worst_ratio = 1.05;  // of a window
  double top1 = 0.95;
  std::int32_t least_windows = 4;  // of each protocol; the interval of fewer says nothing
};

struct BasicItems {
  std::vector<std::vector<TokenId>> windows;  // all of one length, 4 chunks or more
  // The policy acts once, and the rest of the window is scored, beside the protocol of streaming: it acts behind each
  // chunk. Of a change that is no policy both are the same.
  bool has_policy = false;
  bool should_save_bytes = false;  // a policy that keeps all bytes has done nothing: unknown
  BasicLimits limits = {};
};

// Errors: as compare_arms.
Result<GateLayer> run_basic_layer(const GateArms& arms, const BasicItems& items, const GateProgress& progress);

}  // namespace kvasir::eval
