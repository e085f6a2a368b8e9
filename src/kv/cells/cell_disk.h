// A file that takes the bytes of cells and gives them back.
#pragma once

#include <cstdint>

#include "kv/cells/cell.h"

namespace kvasir::kv {

// Copies are named by offset and format, as cells are; the caller makes sure that copies do not overlap.
// Called on the engine thread between two steps, with cells whose bytes are there before any pending
// conversion has run.
class CellDisk {
 public:
  virtual ~CellDisk() = default;
  // Copies a cell in the format of the copy, which is its own or coarser. False when it could not be written.
  virtual bool write(KvCellRef cell, KvCellRef copy, std::int32_t head_dim) = 0;
  // The bytes of a copy into a cell of its format. False, and the cell's bytes anything, when they could not
  // be read.
  virtual bool read(KvCellRef copy, KvCellRef cell, std::int32_t head_dim) = 0;
};

struct DiskSpace {
  CellDisk* file = nullptr;  // none; borrowed
  std::int64_t bytes = 0;    // that copies may take in it
};

}  // namespace kvasir::kv
