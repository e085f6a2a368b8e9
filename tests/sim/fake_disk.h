// Stands in for the file that ghosts leave their copies in; fails now and then.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kv/cells/cell_disk.h"
#include "sim/cell_memory.h"
#include "sim/seeded_random.h"

namespace kvasir::sim {

class FakeDisk final : public kv::CellDisk {
 public:
  FakeDisk(std::uint64_t seed, std::int64_t capacity_bytes)
      : random_(seed), capacity_bytes_(capacity_bytes) {}
  // Whose cells it copies. Before the first copy.
  void attach(CellMemory& memory) { memory_ = &memory; }

  bool write(kv::KvCellRef cell, kv::KvCellRef copy, std::int32_t head_dim) override;
  bool read(kv::KvCellRef copy, kv::KvCellRef cell, std::int32_t head_dim) override;

  // Empty, or the first promise that was broken.
  const std::string& fault() const { return fault_; }

 private:
  struct Copy {
    std::int64_t end;
    kv::KvFormat format;
    std::uint64_t stamp;
  };

  SeededRandom random_;
  const std::int64_t capacity_bytes_;
  CellMemory* memory_ = nullptr;
  std::map<std::int64_t, Copy> copies_;  // by offset; of each place what was written last
  std::string fault_;
};

}  // namespace kvasir::sim
