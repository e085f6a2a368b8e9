#include <gtest/gtest.h>

#include <set>

#include "kv/kv_cache_manager.h"

namespace kvasir::kv::prefill_only_blocks_test {
namespace {

constexpr std::int64_t kCellBytes = cell_bytes(KvFormat::kF16, 64);

// Three layers that see everything and five with a window, two KV heads each.
KvCacheManager make_manager(std::int32_t num_blocks) {
  return KvCacheManager({.groups = {{.num_blocks = num_blocks, .cells_per_block = 6, .num_kv_heads = 2},
                                    {.num_blocks = 2,
                                     .window_tokens = 16,
                                     .cells_per_block = 10,
                                     .num_kv_heads = 2}},
                         .prefix_cache = false});
}

std::int32_t num_held(const KvCacheManager& manager, std::int32_t group) {
  return manager.pool(group).num_blocks() - manager.pool(group).num_free();
}

TEST(PrefillOnlyBlocks, HoldsTheBytesOfOneLayerAndNoMore) {
  KvCacheManager manager = make_manager(8);
  SequenceKv kv = manager.open("", false, 0);
  ASSERT_TRUE(
      manager.prefill_only().allocate(kv, 70));  // 5 layer blocks: one block and two thirds of another
  EXPECT_EQ(manager.held_bytes(), 5 * 2 * kCellBytes);
  EXPECT_EQ(num_held(manager, 0), 2);
  EXPECT_EQ(num_held(manager, 1), 0);
  manager.free(kv);
  EXPECT_EQ(manager.held_bytes(), 0);
  EXPECT_EQ(num_held(manager, 0), 0);
}

// Read as blocks of num_kv_heads cells, the directory names other cells for every layer block and head.
TEST(PrefillOnlyBlocks, LayerBlocksLieApartInTheGroupsDirectory) {
  KvCacheManager manager = make_manager(8);
  SequenceKv other = manager.open("", false, 0), kv = manager.open("", false, 0);
  ASSERT_TRUE(manager.allocate(other, 16));
  ASSERT_TRUE(manager.prefill_only().allocate(kv, 128));
  ASSERT_EQ(kv.prefill_only_tables.size(), 2u);
  std::set<std::int64_t> offsets;
  for (std::int32_t cell = 0; cell < 6; ++cell) {
    offsets.insert(manager.cells().at(0, other.table(0)[0], cell).offset());
  }
  for (const BlockTable& table : kv.prefill_only_tables) ASSERT_EQ(table.size(), 8);
  for (std::int32_t i = 0; i < 8; ++i) {
    for (std::int64_t head = 0; head < 2; ++head) {
      const KvCellMap map{.blocks = kv.prefill_only_tables[1].blocks().data(),
                          .refs = manager.cells().directory(manager.prefill_only().group()).of_cell(head),
                          .memory = nullptr};
      const KvCell cell = map.find(i);
      ASSERT_EQ(cell.format, KvFormat::kF16);
      EXPECT_TRUE(offsets.insert(reinterpret_cast<std::int64_t>(cell.data)).second);
    }
  }
  manager.free(other);
  manager.free(kv);
}

TEST(PrefillOnlyBlocks, TakesTheGroupWithRoomForTheMostTokens) {
  EXPECT_EQ(make_manager(8).prefill_only().group(), 0);
  EXPECT_EQ(make_manager(8).prefill_only().max_tokens(), 8 * 3 * 16);
  EXPECT_EQ(make_manager(3).prefill_only().group(), 1);
  EXPECT_EQ(make_manager(3).prefill_only().max_tokens(), 2 * 5 * 16);
}

TEST(PrefillOnlyBlocks, ChangesNothingWhereThereIsNoRoom) {
  KvCacheManager manager = make_manager(8);
  SequenceKv first = manager.open("", false, 0), second = manager.open("", false, 0);
  ASSERT_TRUE(manager.prefill_only().allocate(first, 10 * 48));  // 60 of the 68 cells of both groups' room
  EXPECT_FALSE(manager.prefill_only().allocate(second, 49));
  EXPECT_TRUE(second.prefill_only_tables.empty());
  EXPECT_EQ(num_held(manager, 0), 10);
  EXPECT_TRUE(manager.prefill_only().allocate(second, 48));
  manager.free(first);
  manager.free(second);
}

TEST(PrefillOnlyBlocks, EvictsWhatIsCached) {
  KvCacheManager manager({.groups = {{.num_blocks = 4, .cells_per_block = 3}}});
  SequenceKv cached = manager.open("", true, 0);
  const std::vector<TokenId> tokens(64, 7);
  ASSERT_TRUE(manager.allocate(cached, 64));
  manager.commit(cached, tokens, 64);
  manager.free(cached);
  SequenceKv kv = manager.open("", false, 0);
  EXPECT_TRUE(manager.prefill_only().allocate(kv, 4 * 48));
  EXPECT_EQ(manager.stats().num_evictions, 4);
  manager.free(kv);
}

TEST(PrefillOnlyBlocks, RefusesBlocksWhoseCellsAreNoWholeLayers) {
  const auto status = KvCacheConfig(
                          {.groups = {{.num_blocks = 1, .cells_per_block = 3, .num_kv_heads = 2}}})
                          .validate();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "KV cache: the 3 cells of a block of layer group 0 are no multiple of 2");
}

}  // namespace
}  // namespace kvasir::kv::prefill_only_blocks_test
