// KV memory that is there before a cell needs it.
#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "kv/cells/cell_arena.h"

namespace kvasir {

// Cells lie in the lowest memory that is free, and what was never touched has to be zeroed by the system when
// it first is, while a prompt waits for it. So an engine without work keeps a part of the untouched memory
// ready: 64 MiB, or a sixteenth of it all where that is less, lest a single short request costs a whole
// cache.
//
// Thread safety: none; the engine thread owns it.
class KvPrefault {
 public:
  static constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
  static constexpr std::int64_t kPieceBytes = std::int64_t{2} << 20;  // a huge page: a few ms at most

  // Both are borrowed. `arena` is of cells in `memory`.
  KvPrefault(AlignedBuffer& memory, const kv::CellArena& arena) : memory_(memory), arena_(arena) {}

  bool is_behind() const { return ready_bytes_ < wanted_bytes(); }
  // Readies the next piece.
  void advance();

  std::int64_t ready_bytes() const { return ready_bytes_; }

 private:
  std::int64_t wanted_bytes() const;

  AlignedBuffer& memory_;
  const kv::CellArena& arena_;
  std::int64_t ready_bytes_ = 0;  // from the beginning on
};

}  // namespace kvasir
