#include "kv/kv_cache_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace kvasir::kv {
namespace {

constexpr std::int32_t kSparePages = 2;

}  // namespace

Status KvCacheConfig::validate() const {
  const auto refuse = [](std::string message) { return make_error(ErrorKind::kUsage, std::move(message)); };
  if (groups.empty()) return refuse("KV cache: at least 1 layer group is needed, got 0");
  std::int64_t total = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const LayerGroup& group = groups[i];
    total += std::int64_t{kBlockIdsPerRoom} * group.num_blocks;
    if (group.num_blocks < 1) {
      return refuse(
          fmt::format("KV cache: layer group {} needs at least 1 block, got {}", i, group.num_blocks));
    }
    if (cells_per_layer < 1 || group.cells_per_block % cells_per_layer != 0) {
      return refuse(fmt::format("KV cache: the {} cells of a block of layer group {} are no multiple of {}",
                                group.cells_per_block, i, cells_per_layer));
    }
    if (group.window_tokens < 0) {
      return refuse(fmt::format("KV cache: the window of layer group {} must be at least 0 tokens, got {}", i,
                                group.window_tokens));
    }
  }
  if (total > kMaxBlockIds) {
    return refuse(fmt::format("KV cache: at most {} blocks in all, got {}", kMaxBlockIds, total));
  }
  return {};
}

std::int64_t KvCacheConfig::memory_bytes() const {
  std::int64_t num_cells = 0;
  for (const LayerGroup& group : groups) num_cells += std::int64_t{group.num_blocks} * group.cells_per_block;
  return CellArena::bytes_for(num_cells, new_cells, head_dim) +
         num_extra_pages() * CellArena::page_bytes(head_dim);
}

std::int32_t KvCacheConfig::num_extra_pages() const {
  std::int32_t num_pages = kSparePages;
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    num_pages += format != KvFormat::kGone && is_coarser(format, new_cells) && supports(format, head_dim);
  }
  return std::min(num_pages, max_extra_pages);
}

std::int64_t KvCacheConfig::num_full_cells() const {
  std::int64_t num_cells = 0;
  for (const LayerGroup& group : groups) num_cells += group.is_full() ? group.cells_per_block : 0;
  return num_cells;
}

std::int32_t KvCacheConfig::num_spare_pages() const { return std::min(kSparePages, num_extra_pages()); }

}  // namespace kvasir::kv
