#include "sampling/distribution.h"

#include <algorithm>

namespace kvasir::sampling {

void Distribution::assign(std::span<const Candidate> candidates) {
  entries_.clear();
  total_ = 0.0;
  for (const Candidate& candidate : candidates) {
    entries_.push_back({.token = candidate.token, .weight = candidate.weight});
    total_ += candidate.weight;
  }
}

void Distribution::assign_certain(TokenId token) {
  entries_.assign({{.token = token, .weight = 1.0f}});
  total_ = 1.0;
}

double Distribution::probability_of(TokenId token) const {
  const auto found = std::ranges::lower_bound(entries_, token, {}, &Entry::token);
  return found != entries_.end() && found->token == token ? probability(*found) : 0.0;
}

}  // namespace kvasir::sampling
