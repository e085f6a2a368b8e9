// The order in which cached blocks without a holder go.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/blocks/block.h"
#include "kv/cells/cell.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// By reuse value: expected hits for each byte it takes (GreedyDual-Size-Frequency: Cherkasova, "Improving WWW
// Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy", 1998). The saving of a hit grows with
// a block's depth in its prefix, but hits become rarer: a value that counts it found less on traces. What
// goes lifts the value that newcomers begin with, so that old hits count less as time goes by; among equals
// the one that joined first goes first, which with no hits at all is the least recently used.
//
// No owner can wash out the others. Parts are of the blocks that hold something, held ones included. An owner
// with less than half of an equal part gives none as long as another can, and one with more than twice an
// equal part gives first.
//
// Thread safety: none; the engine thread is the only caller.
class EvictionOrder {
 public:
  explicit EvictionOrder(std::int32_t num_blocks);

  // So many more blocks, or fewer, hold something of the owner's or soon will.
  void own(CacheOwner owner, std::int32_t num_blocks);

  // The block joins with `value` above what the last one to go had, and not before any with `at_least`.
  // Returns its priority. Requires: it is not there, and the owner owns it.
  double add(BlockId id, CacheOwner owner, double value, double at_least);
  // It is held again, or empty.
  void remove(BlockId id);
  // The next to go, which remove() must follow; kHole when there is none.
  BlockId take_first();

  std::int32_t size() const { return size_; }
  // By priority, whichever owner they have: for tests and reports.
  std::vector<BlockId> by_priority() const;

 private:
  struct Entry {
    double priority = 0.0;
    std::int64_t stamp = 0;  // when it joined
    std::int32_t owner = 0;
    std::int32_t place = -1;  // in its owner's heap
  };
  struct Owner {
    std::vector<BlockId> heap;    // the first to go on top
    std::int32_t num_blocks = 0;  // cached or held
  };

  Entry& at(BlockId id) { return entries_[static_cast<std::size_t>(index_of(id))]; }
  const Entry& at(BlockId id) const { return entries_[static_cast<std::size_t>(index_of(id))]; }
  bool goes_before(BlockId a, BlockId b) const;
  void put(Owner& owner, std::size_t place, BlockId id);
  void settle(Owner& owner, std::size_t place);
  const Owner* first_of_those_above(double num_blocks) const;

  std::vector<Entry> entries_;  // by block
  std::vector<Owner> owners_;
  std::int32_t num_owned_ = 0;
  std::int32_t size_ = 0;
  std::int64_t next_stamp_ = 0;
  double age_ = 0.0;  // the priority of what went last
};

}  // namespace kvasir::kv
