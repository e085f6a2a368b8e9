// Rows that are looked up in the model's file are in memory before a token needs them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "io/mmap_file.h"

namespace kvasir {

// The memory plan counts the whole of these tables. An engine without work brings them in piece by piece, so that the
// first request with a token need not wait for a disk.
//
// Thread safety: none; the engine thread owns it.
class TablePrefault {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{2} << 20;

  // The tables are borrowed.
  explicit TablePrefault(std::vector<std::span<const std::byte>> tables) : tables_(std::move(tables)) {}

  bool is_behind() const { return !tables_.empty(); }
  // Readies the next piece.
  void advance() {
    std::span<const std::byte>& table = tables_.back();
    const std::size_t count = std::min(kPieceBytes, table.size());
    io::MmapFile::populate(table.first(count));
    table = table.subspan(count);
    if (table.empty()) tables_.pop_back();
  }

 private:
  std::vector<std::span<const std::byte>> tables_;  // what is left of them
};

}  // namespace kvasir
