// A disk that is none: for tests of what goes there and comes back.
#pragma once

#include <vector>

#include "kv/cells/cell_disk.h"

namespace kvasir::kv {

// Remembers what it was asked for; fails when told to.
class KeptCopies final : public CellDisk {
 public:
  bool write(KvCellRef cell, KvCellRef copy) override {
    written.push_back({cell, copy});
    return !fails;
  }
  bool read(KvCellRef copy, KvCellRef cell) override {
    read_back.push_back({copy, cell});
    return !fails;
  }

  struct Transfer {
    KvCellRef from, to;
  };
  std::vector<Transfer> written, read_back;
  bool fails = false;
};

}  // namespace kvasir::kv
