// The file that cells go to when they become ghosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "kv/cells/cell_disk.h"
#include "kvasir/result.h"

namespace kvasir::runtime {

// Has no name from the beginning on, so it goes with the process, whatever ends that.
//
// Thread safety: none; the engine thread is the only caller.
class CellFile final : public kv::CellDisk {
 public:
  // The memory that references of cells point into; borrowed.
  struct Memory {
    backend::Backend* backend = nullptr;
    std::byte* cells = nullptr;
  };
  // In `directory`; the system's folder for temporary files when that is empty. Error (kMachine) naming it
  // when no file can be made there.
  // `warn` is told of the first failure of a file that was made; may be empty.
  static Result<std::unique_ptr<CellFile>> create(const std::string& directory, const Memory& memory,
                                                  std::function<void(std::string_view)> warn = {});
  CellFile(const CellFile&) = delete;
  CellFile& operator=(const CellFile&) = delete;
  ~CellFile() override;

  bool write(kv::KvCellRef cell, kv::KvCellRef copy, std::int32_t head_dim) override;
  bool read(kv::KvCellRef copy, kv::KvCellRef cell, std::int32_t head_dim) override;

 private:
  CellFile(int file, const Memory& memory, std::function<void(std::string_view)> warn)
      : file_(file), memory_(memory), warn_(std::move(warn)) {}
  bool fail(std::string_view what);

  const int file_;
  const Memory memory_;
  std::function<void(std::string_view)> warn_;  // empty from the first failure on
  std::vector<std::byte> bytes_;                // a cell on its way to the file or from it
};

}  // namespace kvasir::runtime
