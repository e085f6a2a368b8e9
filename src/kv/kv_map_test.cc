#include "kv/kv_map.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kv/testing/manager_under_test.h"

namespace kvasir::kv::kv_map_test {
namespace {

SequenceKv computed(KvCacheManager& manager, std::string_view tenant, const std::vector<TokenId>& tokens) {
  SequenceKv kv = manager.open(CacheScope{tenant, tenant, tokens}, true, 0);
  const std::int32_t num_cached_tokens = manager.match_prefix(kv, tokens);
  const auto length = static_cast<std::int32_t>(tokens.size());
  EXPECT_GE(length, num_cached_tokens);
  EXPECT_TRUE(manager.allocate(kv, length));
  manager.commit(kv, tokens, length);
  return kv;
}

std::int64_t bytes_of(const KvMap& map, KvOwner owner) {
  const auto& formats = map[static_cast<std::size_t>(owner)];
  return std::accumulate(formats.begin(), formats.end(), std::int64_t{0});
}

// Two groups, so that a block has cells of several layers and one that slides.
TEST(KvMap, SaysWhoseEveryByteIs) {
  KvCacheManager manager({.groups = {{.num_blocks = 16, .cells_per_block = 4, .num_kv_heads = 2},
                                     {.num_blocks = 8,
                                      .window_tokens = 40,
                                      .cells_per_block = 2,
                                      .num_kv_heads = 2,
                                      .head_dim = 128}},
                          .public_prefixes = {iota_tokens(32, 1000)},
                          .prefix_hash_key = {3, 4}});
  const auto check_sum = [&](const KvMap& map) {
    std::int64_t sum = 0;
    for (int owner = 0; owner < kNumKvOwners; ++owner) sum += bytes_of(map, static_cast<KvOwner>(owner));
    EXPECT_EQ(sum, manager.cells().arena().used_bytes());
  };
  EXPECT_EQ(manager.cells().arena().used_bytes(), 0);
  check_sum(map_of(manager));

  SequenceKv first = computed(manager, "a", iota_tokens(40));
  KvMap map = map_of(manager);
  EXPECT_GT(bytes_of(map, KvOwner::kSequence), 0);
  EXPECT_EQ(bytes_of(map, KvOwner::kSequences), 0);
  EXPECT_EQ(map[0][static_cast<std::size_t>(KvFormat::kF16)], bytes_of(map, KvOwner::kSequence));
  check_sum(map);

  SequenceKv second = computed(manager, "a", iota_tokens(40));
  map = map_of(manager);
  EXPECT_GT(bytes_of(map, KvOwner::kSequences), 0);
  check_sum(map);

  manager.free(first);
  manager.free(second);
  map = map_of(manager);
  EXPECT_EQ(bytes_of(map, KvOwner::kSequence), 0);
  EXPECT_EQ(bytes_of(map, KvOwner::kSequences), 0);
  EXPECT_GT(bytes_of(map, KvOwner::kTenant), 0);
  EXPECT_EQ(bytes_of(map, KvOwner::kPublic), 0);
  check_sum(map);

  SequenceKv third = computed(manager, "b", iota_tokens(40, 1000));
  manager.free(third);
  map = map_of(manager);
  EXPECT_GT(bytes_of(map, KvOwner::kPublic), 0);
  check_sum(map);
}

}  // namespace
}  // namespace kvasir::kv::kv_map_test
