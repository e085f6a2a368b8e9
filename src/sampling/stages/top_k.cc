#include "sampling/stages/top_k.h"

#include <algorithm>

namespace kvasir::sampling {

void keep_top_k(std::vector<Candidate>& candidates, std::size_t k, std::vector<Candidate>& scratch) {
  if (candidates.size() <= k) return;
  scratch.assign(candidates.begin(), candidates.end());
  const auto last = scratch.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::nth_element(scratch.begin(), last, scratch.end(), more_likely);
  std::erase_if(candidates, [&](const Candidate& candidate) { return more_likely(*last, candidate); });
}

}  // namespace kvasir::sampling
