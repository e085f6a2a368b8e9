// The distribution that a guess was drawn from.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "sampling/candidate.h"

namespace kvasir::sampling {

// A probability for each token that could have been drawn, in the floats that the draw used: those who check the guess
// compare theirs with it. 8 bytes a token. Keeps its memory.
//
// Thread safety: as of a value.
class Distribution {
 public:
  // Guesses are drawn among so many tokens at most, so that what is kept of them has a bound.
  static constexpr std::size_t kMaxTokens = 4096;

  struct Entry {
    TokenId token = kNoToken;
    float weight = 0.0f;
  };

  // Requires: ascending ids, and a positive weight.
  void assign(std::span<const Candidate> candidates);
  // There was one token to draw.
  void assign_certain(TokenId token);

  // By ascending id.
  std::span<const Entry> entries() const { return entries_; }
  // The probability of one of entries().
  double probability(const Entry& entry) const { return entry.weight / total_; }
  // 0 for a token that could not be drawn.
  double probability_of(TokenId token) const;

 private:
  std::vector<Entry> entries_;
  double total_ = 1.0;
};

}  // namespace kvasir::sampling
