// Stands in for the memory behind the cells: whose bytes lie where, and whether they are still whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_cache_manager.h"

namespace kvasir::sim {

class CellMemory {
 public:
  explicit CellMemory(const kv::KvCacheManager& kv);

  // Writes the cells anew, as the runtime does before a step. Empty, or what was wrong with one.
  std::string convert(const kv::CellConversions& conversions);
  // The first token of the block is stored: its cells are its own from here on.
  void begin_block(std::int32_t group, BlockId block);
  // Blocks are made of others: their cells hold the same.
  void copy_block(const kv::CellStore::BlockCopy& copy) { stamp_of_[{copy.group, copy.to}] = stamp_of_.at({copy.group, copy.from}); }
  // Empty, or which cell of the block does not hold its bytes any more.
  std::string check(std::int32_t group, BlockId block) const;

 private:
  // [begin, end) in memory_.
  static std::pair<std::size_t, std::size_t> granules(kv::KvCellRef cell, std::int32_t head_dim);
  // The stamp that all of the cell's bytes hold; none when they are not whole.
  std::optional<std::uint64_t> stamp_of(kv::KvCellRef cell, std::int32_t head_dim) const;
  void fill(kv::KvCellRef cell, std::int32_t head_dim, std::uint64_t stamp);
  bool holds(kv::KvCellRef cell, std::int32_t head_dim, std::uint64_t stamp) const;
  std::string convert_round(std::span<const kv::CellConversion> round);

  const kv::KvCacheManager& kv_;
  std::vector<std::uint64_t> memory_;  // the owner of each 32 bytes
  std::vector<bool> is_source_;        // of the round that runs; likewise
  std::map<std::pair<std::int32_t, BlockId>, std::uint64_t> stamp_of_;
  std::uint64_t next_stamp_ = 1;
};

}  // namespace kvasir::sim
