#include "sampling/stages/top_p.h"

#include <algorithm>
#include <cstddef>

namespace kvasir::sampling {

// Halves the range that holds the nucleus' last candidate, so the work is linear in the candidates.
void keep_top_p(std::vector<Candidate>& candidates, double mass, std::vector<Candidate>& scratch) {
  if (candidates.size() <= 1) return;
  scratch.assign(candidates.begin(), candidates.end());
  auto begin = scratch.begin();
  auto end = scratch.end();
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, more_likely);
    double front_mass = 0.0;
    for (auto it = begin; it != middle; ++it) front_mass += it->weight;
    if (front_mass >= mass) {
      end = middle;
    } else {
      mass -= front_mass;
      begin = middle;
    }
  }
  const Candidate last = *begin;
  std::erase_if(candidates, [&](const Candidate& candidate) { return more_likely(last, candidate); });
}

}  // namespace kvasir::sampling
