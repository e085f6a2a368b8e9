// A disk that is none: for tests of what goes there and comes back.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/cells/cell_disk.h"

namespace kvasir::kv {

// Remembers what it was asked for; fails when told to.
class KeptCopies final : public CellDisk {
 public:
  bool write(KvCellRef cell, KvCellRef copy, std::int32_t) override {
    written.push_back({cell, copy});
    return !fails;
  }
  bool read(KvCellRef copy, KvCellRef cell, std::int32_t) override {
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
