#include "sampling/stages/residual.h"

#include <algorithm>

namespace kvasir::sampling {
namespace {

// Calls `take(token, excess)` for each token of more probability in p than in q, until it returns true.
template <typename Take>
void for_each_excess(std::span<const Candidate> candidates, double total, const Distribution& q, const Take& take) {
  auto entry = q.entries().begin();
  for (const Candidate& candidate : candidates) {
    while (entry != q.entries().end() && entry->token < candidate.token) ++entry;
    const bool is_there = entry != q.entries().end() && entry->token == candidate.token;
    const double excess = candidate.weight / total - (is_there ? q.probability(*entry) : 0.0);
    if (excess > 0.0 && take(candidate.token, excess)) return;
  }
}

}  // namespace

TokenId draw_residual(std::span<const Candidate> candidates, double total, const Distribution& q, double uniform) {
  double mass = 0.0;
  for_each_excess(candidates, total, q, [&](TokenId, double excess) {
    mass += excess;
    return false;
  });
  double left = uniform * mass;
  TokenId token = kNoToken;
  for_each_excess(candidates, total, q, [&](TokenId candidate, double excess) {
    token = candidate;  // rounding may leave a little over at the end: then the last one it is
    left -= excess;
    return left < 0.0;
  });
  return token;
}

}  // namespace kvasir::sampling
