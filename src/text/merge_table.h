// Finds what two neighbouring pieces merge into: an open-addressing table.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "text/pair_merger.h"

namespace kvasir::text {

// Thread safety: immutable once filled. Invariant: at most two thirds of the slots are used.
class MergeTable {
 public:
  explicit MergeTable(std::size_t num_merges) : slots_(std::bit_ceil(num_merges + num_merges / 2 + 2)) {}

  // Enters a pair; the first entry of a pair counts.
  void insert(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[find_slot(key_of(left, right))];
    if (slot.merge.piece == kNoPiece) slot = {key_of(left, right), merge};
  }

  std::optional<Merge> find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[find_slot(key_of(left, right))];
    if (slot.merge.piece == kNoPiece) return std::nullopt;
    return slot.merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }

  // The slot of this pair, or the free one where it belongs.
  std::size_t find_slot(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    // Multiplication by 2^64 / golden ratio, whose high bits depend on all of the key (Knuth 6.4).
    for (std::size_t i = (key * 0x9E3779B97F4A7C15 >> 32) & mask;; i = (i + 1) & mask) {
      if (slots_[i].merge.piece == kNoPiece || slots_[i].key == key) return i;
    }
  }

  std::vector<Slot> slots_;
};

}  // namespace kvasir::text
