#include "kv/blocks/block_pool.h"

#include <gtest/gtest.h>

namespace kvasir::kv::block_pool_test {
namespace {

BlockId take(BlockPool& pool) { return pool.allocate().value(); }

TEST(BlockPool, HandsOutEveryBlockOnceAndThenSaysNo) {
  BlockPool pool(3);
  EXPECT_EQ(take(pool), BlockId{0});
  EXPECT_EQ(take(pool), BlockId{1});
  EXPECT_EQ(take(pool), BlockId{2});
  EXPECT_FALSE(pool.allocate().has_value());
  EXPECT_EQ(pool.num_free(), 0);
}

TEST(BlockPool, FreesABlockOnlyWhenItsLastHolderLetsGo) {
  BlockPool pool(1);
  const BlockId block = take(pool);
  pool.add_reference(block);
  pool.release(block, 1);
  EXPECT_EQ(pool.ref_count(block), 1);
  EXPECT_EQ(pool.num_free(), 0);
  pool.release(block, 1);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockPool, EvictsLeastRecentlyFreedFirstWhereNothingWasHit) {
  BlockPool pool(3);
  for (std::int32_t i = 0; i < 3; ++i) pool.set_contents(take(pool), {.node = PrefixNodeId{i}});
  for (std::int32_t i : {1, 2, 0}) pool.release(BlockId{i}, 1);
  EXPECT_EQ(pool.free_list(), (std::vector{BlockId{1}, BlockId{2}, BlockId{0}}));
  EXPECT_FALSE(pool.allocate().has_value());
  const auto eviction = pool.evict();
  EXPECT_EQ(eviction->block, BlockId{1});
  EXPECT_EQ(eviction->contents, PrefixNodeId{1});
  EXPECT_EQ(pool.contents(BlockId{1}), kNoPrefixNode);
  EXPECT_EQ(pool.num_cached_free(), 2);
  EXPECT_EQ(take(pool), BlockId{1});
  EXPECT_EQ(pool.evict()->block, BlockId{2});
  EXPECT_EQ(pool.evict()->block, BlockId{0});
  EXPECT_FALSE(pool.evict().has_value());
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, KeepsWhatIsHitOrSmall) {
  BlockPool pool(4);
  for (std::int32_t i = 0; i < 4; ++i) pool.set_contents(take(pool), {.node = PrefixNodeId{i}});
  pool.count_hit(BlockId{0});
  pool.keep_behind(BlockId{3}, 2.5);
  EXPECT_EQ(pool.release(BlockId{0}, 1), 2.0);
  EXPECT_EQ(pool.release(BlockId{1}, 2), 0.5);
  EXPECT_EQ(pool.release(BlockId{2}, 1), 1.0);
  EXPECT_EQ(pool.release(BlockId{3}, 1), 2.5);
  EXPECT_EQ(pool.free_list(), (std::vector{BlockId{1}, BlockId{2}, BlockId{0}, BlockId{3}}));
}

TEST(BlockPool, HandsOutEmptyBlocksOnly) {
  BlockPool pool(2);
  const BlockId cached = take(pool);
  const BlockId empty = take(pool);
  pool.set_contents(cached, {.node = PrefixNodeId{9}});
  pool.release(cached, 1);
  pool.release(empty, 1);
  EXPECT_EQ(pool.num_cached_free(), 1);
  EXPECT_EQ(take(pool), empty);
  EXPECT_FALSE(pool.allocate().has_value());
}

TEST(BlockPool, BringsACachedFreeBlockBack) {
  BlockPool pool(3);
  for (std::int32_t i = 0; i < 3; ++i) pool.set_contents(take(pool), {.node = PrefixNodeId{i}});
  for (std::int32_t i = 0; i < 3; ++i) pool.release(BlockId{i}, 1);
  pool.add_reference(BlockId{1});  // from the middle of the list
  EXPECT_EQ(pool.ref_count(BlockId{1}), 1);
  EXPECT_EQ(pool.contents(BlockId{1}), PrefixNodeId{1});
  EXPECT_EQ(pool.free_list(), (std::vector{BlockId{0}, BlockId{2}}));
  pool.add_reference(BlockId{0});  // from its start
  EXPECT_EQ(pool.evict()->block, BlockId{2});
}

}  // namespace
}  // namespace kvasir::kv::block_pool_test
