#include "kv/kv_cache_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace kvasir::kv {
namespace {

constexpr std::int32_t kSparePages = 2;

std::unexpected<Error> refuse(std::string message) {
  return make_error(ErrorKind::kUsage, std::move(message));
}

Status check_heads(const LayerGroup& group, std::size_t index, KvFormat new_cells) {
  if (group.num_kv_heads < 1 || group.cells_per_block % group.num_kv_heads != 0) {
    return refuse(fmt::format("KV cache: the {} cells of a block of layer group {} are no multiple of {}",
                              group.cells_per_block, index, group.num_kv_heads));
  }
  if (group.head_dim < 1 || !supports(new_cells, group.head_dim)) {
    return refuse(fmt::format("KV cache: the heads of layer group {} are {} wide, which {} does not support",
                              index, group.head_dim, name_of(new_cells)));
  }
  return {};
}

}  // namespace

Status KvCacheConfig::validate() const {
  if (groups.empty()) return refuse("KV cache: at least 1 layer group is needed, got 0");
  std::int64_t total = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const LayerGroup& group = groups[i];
    total += std::int64_t{kBlockIdsPerRoom} * group.num_blocks;
    if (group.num_blocks < 1) {
      return refuse(
          fmt::format("KV cache: layer group {} needs at least 1 block, got {}", i, group.num_blocks));
    }
    KVASIR_CHECKED(check_heads(group, i, new_cells));
    if (group.window_tokens < 0) {
      return refuse(fmt::format("KV cache: the window of layer group {} must be at least 0 tokens, got {}", i,
                                group.window_tokens));
    }
    if (group.is_full() && group.head_dim != full_head_dim()) {
      return refuse(fmt::format("KV cache: groups without a window must have heads of one width, {} and {} differ",
                                full_head_dim(), group.head_dim));
    }
  }
  if (total > kMaxBlockIds) {
    return refuse(fmt::format("KV cache: at most {} blocks in all, got {}", kMaxBlockIds, total));
  }
  return {};
}

std::int64_t KvCacheConfig::memory_bytes() const {
  std::map<std::int32_t, std::int64_t> num_cells;  // by width, each of which has pages of its own
  for (const LayerGroup& group : groups) {
    num_cells[group.head_dim] += std::int64_t{group.num_blocks} * group.cells_per_block;
  }
  const std::int64_t page_bytes = CellArena::page_bytes(widest_head_dim());
  std::int64_t bytes = num_extra_pages() * page_bytes;
  for (const auto& [head_dim, count] : num_cells) {
    bytes += CellArena::bytes_for({.format = new_cells, .head_dim = head_dim, .num_cells = count}, page_bytes);
  }
  return bytes;
}

std::int32_t KvCacheConfig::num_extra_pages() const {
  std::int32_t num_pages = kSparePages;
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    num_pages += format != KvFormat::kGone && is_coarser(format, new_cells) && supports(format, full_head_dim()) &&
                 (!has_key_components(format) || full_group().key_bases != nullptr);
  }
  return std::min(num_pages, max_extra_pages);
}

std::int64_t KvCacheConfig::num_full_cells() const {
  std::int64_t num_cells = 0;
  for (const LayerGroup& group : groups) num_cells += group.is_full() ? group.cells_per_block : 0;
  return num_cells;
}

const LayerGroup& KvCacheConfig::full_group() const {
  const auto full = std::ranges::find_if(groups, &LayerGroup::is_full);
  return full == groups.end() ? groups.front() : *full;
}

std::int32_t KvCacheConfig::widest_head_dim() const {
  return std::ranges::max(groups, {}, &LayerGroup::head_dim).head_dim;
}

bool KvCacheConfig::has_equal_layers() const {
  return std::ranges::all_of(groups, [this](const LayerGroup& group) {
    return group.num_kv_heads == groups.front().num_kv_heads && group.head_dim == groups.front().head_dim;
  });
}

std::int32_t KvCacheConfig::num_spare_pages() const { return std::min(kSparePages, num_extra_pages()); }

}  // namespace kvasir::kv
