#include "sampling/stages/draw.h"

namespace kvasir::sampling {

TokenId draw(std::span<const Candidate> candidates, double uniform) {
  double total = 0.0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  double left = uniform * total;
  TokenId token = kNoToken;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight == 0.0f) continue;
    token = candidate.token;  // rounding may leave a little over at the end: then the last one it is
    left -= candidate.weight;
    if (left < 0.0) break;
  }
  return token;
}

}  // namespace kvasir::sampling
