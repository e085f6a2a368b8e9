#include "kv/blocks/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kvasir::kv::block_table_test {
namespace {

TEST(BlockTable, MapsPositionsToBlocksAndSlots) {
  BlockTable table;
  table.append(BlockId{7});
  table.append(BlockId{3});
  EXPECT_EQ(table.block_at(15), BlockId{7});
  EXPECT_EQ(table.block_at(16), BlockId{3});
  EXPECT_EQ(BlockTable::slot_at(16), 0);
  EXPECT_EQ(BlockTable::slot_at(31), 15);
}

TEST(BlockTable, HoleMovesNobodysPosition) {
  BlockTable table;
  for (std::int32_t i : {5, 6, 7, 8}) table.append(BlockId{i});
  EXPECT_EQ(table.make_hole(1), BlockId{6});
  EXPECT_EQ(table.size(), 4);
  EXPECT_EQ(table.num_held(), 3);
  EXPECT_EQ(table.block_at(16), kHole);
  EXPECT_EQ(table.block_at(32), BlockId{7});
}

TEST(BlockTable, KnowsItsFirstHeldBlock) {
  BlockTable table;
  table.append(kHole);
  EXPECT_EQ(table.first_held(), 1);
  for (std::int32_t i : {5, 6, 7}) table.append(BlockId{i});
  EXPECT_EQ(table.first_held(), 1);
  table.make_hole(2);
  EXPECT_EQ(table.first_held(), 1);
  table.make_hole(1);
  EXPECT_EQ(table.first_held(), 3);
  table.make_hole(3);
  EXPECT_EQ(table.first_held(), table.size());
}

TEST(BlockTable, ReplacesABlockInPlace) {
  BlockTable table;
  table.append(BlockId{1});
  table.replace(0, BlockId{2});
  EXPECT_TRUE(std::ranges::equal(table.blocks(), std::vector{BlockId{2}}));
  EXPECT_EQ(table.num_held(), 1);
}

}  // namespace
}  // namespace kvasir::kv::block_table_test
