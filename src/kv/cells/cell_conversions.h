// Cells to write anew before a step, in an order in which nothing is overwritten that is still to be read.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kv/cells/cell.h"

namespace kvasir::kv {

// Conversions come in rounds. Within a round no target overlaps a source, so they may run in any order and at
// once; a target may overlap a source of an earlier round, which is free by then. So a full memory becomes
// coarser through the few pages that are free: each round writes into what the last one left.
//
// Thread safety: none.
class CellConversions {
 public:
  void add(CellConversion conversion) { all_.push_back(conversion); }
  // Conversions that are added from here on run after all earlier ones.
  void end_round() {
    if (all_.size() > begin_of_last()) round_ends_.push_back(all_.size());
  }
  void clear() {
    all_.clear();
    round_ends_.clear();
  }

  bool empty() const { return all_.empty(); }
  std::span<const CellConversion> all() const { return all_; }

  // Calls fn(std::span<const CellConversion>) for each round, the first one first.
  template <class Fn>
  void for_each_round(Fn fn) const {
    std::size_t begin = 0;
    for (const std::size_t end : round_ends_) {
      fn(all().subspan(begin, end - begin));
      begin = end;
    }
    if (begin < all_.size()) fn(all().subspan(begin));
  }

 private:
  std::size_t begin_of_last() const { return round_ends_.empty() ? 0 : round_ends_.back(); }

  std::vector<CellConversion> all_;
  std::vector<std::size_t> round_ends_;  // in all_; those behind the last one are a round too
};

}  // namespace kvasir::kv
