// A token that may still be chosen.
#pragma once

#include "kvasir/ids.h"

namespace kvasir::sampling {

struct Candidate {
  float logit = 0.0f;
  float weight = 0.0f;  // e^((logit - max) / temperature): its probability, not normalised
  TokenId token = kNoToken;
};

// The order of likelihood; among equal logits the lower id comes first, so the order is total.
constexpr bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

}  // namespace kvasir::sampling
