#include "kv/kv_map.h"

#include <optional>

namespace kvasir::kv {
namespace {

// No owner where it is empty.
std::optional<KvOwner> owner_of(const BlockPool& pool, BlockId block) {
  const std::int32_t num_holders = pool.ref_count(block);
  if (num_holders > 0) return num_holders == 1 ? KvOwner::kSequence : KvOwner::kSequences;
  if (pool.contents(block) == kNoPrefixNode) return std::nullopt;
  return pool.owner(block) == kAnyOwner ? KvOwner::kPublic : KvOwner::kTenant;
}

}  // namespace

KvMap map_of(const KvCacheManager& kv) {
  KvMap map{};
  const CellStore& cells = kv.cells();
  for (std::int32_t group = 0; group < kv.num_groups(); ++group) {
    const BlockPool& pool = kv.pool(group);
    for (std::int32_t i = 0; i < pool.num_blocks(); ++i) {
      const BlockId block{i};
      const auto owner = owner_of(pool, block);
      if (!owner) continue;
      auto& of_owner = map[static_cast<std::size_t>(*owner)];
      for (std::int32_t cell = 0; cell < cells.cells_per_block(group); ++cell) {
        const KvFormat format = cells.at(group, block, cell).format();
        of_owner[static_cast<std::size_t>(format)] += cell_bytes(format, cells.head_dim(group));
      }
    }
  }
  return map;
}

}  // namespace kvasir::kv
