// The memory behind KV block ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/kv_layout.h"
#include "base/aligned_buffer.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::runtime {

// One region per layer group, a fixed number of blocks each. Memory is zero at first and touched only when a
// block is first written, so an unused cache costs address space, not RAM.
//
// Does not know which blocks are in use: kv/block_pool does.
class KvStorage {
 public:
  struct Group {
    backend::KvLayout layout;
    std::int32_t num_blocks = 0;
  };

  // Error (kMachine) naming the size when the system refuses it.
  static Result<KvStorage> create(std::span<const Group> groups);

  std::byte* block(std::size_t group, BlockId id) const {
    return bases_[group] + groups_[group].layout.block_bytes() * index_of(id);
  }
  const backend::KvLayout& layout(std::size_t group) const { return groups_[group].layout; }
  std::size_t num_groups() const { return groups_.size(); }
  std::int64_t total_bytes() const;

 private:
  std::vector<Group> groups_;
  std::vector<AlignedBuffer> regions_;
  std::vector<std::byte*> bases_;  // of the regions
};

}  // namespace kvasir::runtime
