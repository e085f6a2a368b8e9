// The common beginning of tests of the KV cache manager.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "kv/kv_cache_manager.h"

namespace kvasir::kv {

inline std::vector<TokenId> iota_tokens(std::int32_t count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline KvCacheManager make_manager(std::vector<LayerGroup> groups, bool prefix_cache = true) {
  return KvCacheManager(
      {.groups = std::move(groups), .prefix_cache = prefix_cache, .prefix_hash_key = {3, 4}});
}

}  // namespace kvasir::kv
