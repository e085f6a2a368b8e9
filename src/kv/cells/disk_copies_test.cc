#include "kv/cells/disk_copies.h"

#include <gtest/gtest.h>

namespace kvasir::kv::disk_copies_test {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr std::int32_t kHeadDims[] = {kHeadDim};

TEST(DiskCopies, KeepsNothingWithoutRoomForAPage) {
  const DiskCopies copies(CellArena::page_bytes(kHeadDim) - 1, kHeadDims);
  EXPECT_FALSE(copies.is_enabled());
  EXPECT_EQ(copies.capacity_bytes(), 0);
}

TEST(DiskCopies, AreFoundByTheirCellsUntilTheyAreForgotten) {
  DiskCopies copies(CellArena::page_bytes(kHeadDim), kHeadDims);
  const KvCellRef copy = copies.keep(0, BlockId{3}, 1, 4, KvFormat::kK3V2, kHeadDim);
  EXPECT_EQ(copy.format(), KvFormat::kK3V2);
  EXPECT_EQ(copies.find(0, BlockId{3}, 1), copy);
  EXPECT_TRUE(copies.find(0, BlockId{3}, 2).is_gone());
  EXPECT_TRUE(copies.find(1, BlockId{3}, 1).is_gone());
  EXPECT_EQ(copies.used_bytes(), cell_bytes(KvFormat::kK3V2, kHeadDim));
  copies.forget(0, BlockId{3}, 1);
  EXPECT_TRUE(copies.find(0, BlockId{3}, 1).is_gone());
  EXPECT_EQ(copies.used_bytes(), 0);
}

TEST(DiskCopies, GoWithTheirBlock) {
  DiskCopies copies(CellArena::page_bytes(kHeadDim), kHeadDims);
  for (std::int32_t cell = 0; cell < 4; ++cell) copies.keep(0, BlockId{7}, cell, 4, KvFormat::kK3V2, kHeadDim);
  copies.keep(0, BlockId{8}, 0, 4, KvFormat::kK3V2, kHeadDim);
  copies.forget(0, BlockId{7});
  EXPECT_EQ(copies.used_bytes(), cell_bytes(KvFormat::kK3V2, kHeadDim));
}

TEST(DiskCopies, TakeNoMoreThanTheFileHolds) {
  DiskCopies copies(CellArena::page_bytes(kHeadDim), kHeadDims);
  std::int32_t num_kept = 0;
  while (!copies.keep(0, BlockId{num_kept}, 0, 1, KvFormat::kF16, kHeadDim).is_gone()) ++num_kept;
  EXPECT_EQ(num_kept, CellArena::page_bytes(kHeadDim) / cell_bytes(KvFormat::kF16, kHeadDim));
  EXPECT_LE(copies.used_bytes(), copies.capacity_bytes());
  copies.forget(0, BlockId{2});
  EXPECT_FALSE(copies.keep(0, BlockId{99}, 0, 1, KvFormat::kF16, kHeadDim).is_gone());
}

}  // namespace
}  // namespace kvasir::kv::disk_copies_test
