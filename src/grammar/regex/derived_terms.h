// The known derivatives of a store's terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "grammar/regex/term.h"

namespace kvasir::grammar {

// All Derivatives of one store read and write it: what was found while a schema was compiled serves its masks.
//
// Thread safety: none.
struct DerivedTerms {
  enum class Life : std::uint8_t { kUnknown, kAlive, kDead };

  std::vector<std::int32_t> raw_places;   // by term, in raw; -1: not asked yet
  std::vector<std::int32_t> live_places;  // by term, in live
  std::vector<Life> lives;                // by term
  std::size_t num_ranges = 0;
  std::deque<TermRanges> raw;   // targets may be dead
  std::deque<TermRanges> live;

  std::size_t size_bytes() const {
    return (raw_places.size() + live_places.size()) * sizeof(std::int32_t) + lives.size() +
           (raw.size() + live.size()) * sizeof(TermRanges) + num_ranges * sizeof(TermRange);
  }
};

}  // namespace kvasir::grammar
