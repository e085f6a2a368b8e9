#include "runtime/kv_storage.h"

#include <fmt/format.h>

#include <utility>

#include "base/checked_math.h"
#include "base/units.h"

namespace kvasir::runtime {

Result<KvStorage> KvStorage::create(std::span<const Group> groups) {
  KvStorage storage;
  for (const Group& group : groups) {
    const auto bytes = checked_mul<std::int64_t>(group.num_blocks, group.layout.block_bytes());
    if (!bytes)
      return make_error(ErrorKind::kMachine, fmt::format("KV cache: {} blocks overflow", group.num_blocks));
    auto region = AlignedBuffer::allocate(*bytes);
    if (!region) {
      return make_error(ErrorKind::kMachine, fmt::format("KV cache: cannot reserve {} for {} blocks",
                                                         format_bytes(*bytes), group.num_blocks));
    }
    storage.groups_.push_back(group);
    storage.bases_.push_back(region->data());
    storage.regions_.push_back(std::move(*region));
  }
  return storage;
}

std::int64_t KvStorage::total_bytes() const {
  std::int64_t total = 0;
  for (const Group& group : groups_) total += group.layout.block_bytes() * group.num_blocks;
  return total;
}

}  // namespace kvasir::runtime
