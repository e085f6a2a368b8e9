#include "kv/cells/cell_arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <span>
#include <vector>

namespace kvasir::kv::cell_arena_test {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr KvFormat kFormats[] = {KvFormat::kF32,   KvFormat::kF16,  KvFormat::kQ8,    KvFormat::kK8V4,
                                 KvFormat::kK4cV4, KvFormat::kK4V4, KvFormat::kK4cV3, KvFormat::kK4V3,
                                 KvFormat::kK3cV3, KvFormat::kK3V3, KvFormat::kK4V2,  KvFormat::kK3cV2,
                                 KvFormat::kK3V2};

std::int64_t pages(std::int64_t count) { return count * CellArena::page_bytes(kHeadDim); }

TEST(CellArena, GivesOutAllOfItAndNoMore) {
  for (KvFormat format : kFormats) {
    SCOPED_TRACE(int(format));
    CellArena arena(pages(3), kHeadDim);
    const std::int64_t available = arena.num_available(format, kHeadDim);
    EXPECT_EQ(available, 3 * (pages(1) / cell_bytes(format, kHeadDim)));
    for (std::int64_t i = 0; i < available; ++i) ASSERT_TRUE(arena.allocate(format, kHeadDim).has_value());
    EXPECT_FALSE(arena.allocate(format, kHeadDim).has_value());
    EXPECT_EQ(arena.num_available(format, kHeadDim), 0);
    EXPECT_EQ(arena.reserved_bytes(), arena.capacity_bytes());
    EXPECT_EQ(arena.used_bytes(), available * cell_bytes(format, kHeadDim));
  }
}

TEST(CellArena, APageThatRanEmptyServesAnyFormat) {
  CellArena arena(pages(1), kHeadDim);
  const auto exact = arena.allocate(KvFormat::kF16, kHeadDim);
  ASSERT_TRUE(exact.has_value());
  EXPECT_FALSE(arena.allocate(KvFormat::kQ8, kHeadDim).has_value());
  arena.free(*exact);
  EXPECT_EQ(arena.reserved_bytes(), 0);
  EXPECT_TRUE(arena.allocate(KvFormat::kQ8, kHeadDim).has_value());
}

// New cells fill the lowest page with room, so that a shrinking set of cells leaves whole pages behind.
TEST(CellArena, FillsTheLowestPageFirst) {
  CellArena arena(pages(4), kHeadDim);
  std::vector<KvCellRef> cells;
  while (auto cell = arena.allocate(KvFormat::kF16, kHeadDim)) cells.push_back(*cell);
  const std::size_t per_page = cells.size() / 4;
  arena.free(cells[3 * per_page + 5]);
  arena.free(cells[per_page + 2]);
  EXPECT_EQ(arena.allocate(KvFormat::kF16, kHeadDim), cells[per_page + 2]);
  EXPECT_EQ(arena.allocate(KvFormat::kF16, kHeadDim), cells[3 * per_page + 5]);
}

// Random traffic against a plain map of byte ranges: nothing overlaps, nothing leaks.
TEST(CellArena, NeverGivesAByteTwice) {
  struct Cell {
    KvCellRef ref;
    std::int64_t bytes = 0;
  };
  constexpr std::int32_t kHeadDims[] = {256, kHeadDim, 96};
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::span head_dims(kHeadDims + seed % 3, std::size(kHeadDims) - seed % 3);  // three, two, or one
    CellArena arena(6 * CellArena::page_bytes(std::ranges::max(head_dims)), head_dims);
    std::map<std::int64_t, Cell> live;  // by offset
    std::int64_t used_bytes = 0;
    for (int step = 0; step < 6000; ++step) {
      const bool grows = random() % 1000 < (step / 1500 % 2 == 0 ? 700u : 300u);
      if (grows) {
        const KvFormat format = kFormats[random() % std::size(kFormats)];
        const std::int32_t head_dim = head_dims[random() % head_dims.size()];
        if (!supports(format, head_dim)) continue;
        const std::int64_t available = arena.num_available(format, head_dim);
        const auto ref = arena.allocate(format, head_dim);
        ASSERT_EQ(ref.has_value(), available > 0);
        if (!ref) continue;
        ASSERT_EQ(arena.num_available(format, head_dim), available - 1);
        const Cell cell = {*ref, cell_bytes(format, head_dim)};
        const std::int64_t end = ref->offset() + cell.bytes;
        ASSERT_LE(end, arena.capacity_bytes());
        const auto next = live.lower_bound(ref->offset());
        if (next != live.end()) {
          ASSERT_LE(end, next->first);
        }
        if (next != live.begin()) {
          const Cell& before = std::prev(next)->second;
          ASSERT_LE(before.ref.offset() + before.bytes, ref->offset());
        }
        live.emplace(ref->offset(), cell);
        used_bytes += cell.bytes;
      } else if (!live.empty()) {
        const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
        used_bytes -= victim->second.bytes;
        arena.free(victim->second.ref);
        live.erase(victim);
      }
      ASSERT_EQ(arena.used_bytes(), used_bytes);
      ASSERT_GE(arena.reserved_bytes(), used_bytes);
    }
    for (const auto& [offset, cell] : live) arena.free(cell.ref);
    EXPECT_EQ(arena.used_bytes(), 0);
    EXPECT_EQ(arena.reserved_bytes(), 0);
  }
}

// Each width has pages of its own, so what is left over of one is no room for the other.
TEST(CellArena, CountsTheRoomForSeveralWidthsTogether) {
  constexpr std::int32_t kHeadDims[] = {64, 256};
  const std::int64_t page = CellArena::page_bytes(256);
  CellArena arena(3 * page, kHeadDims);
  const std::int64_t narrow = page / cell_bytes(KvFormat::kF16, 64);
  const std::int64_t wide = page / cell_bytes(KvFormat::kF16, 256);
  const auto has_room = [&](std::int64_t num_narrow, std::int64_t num_wide) {
    const CellArena::Cells wanted[] = {{KvFormat::kF16, 64, num_narrow}, {KvFormat::kF16, 256, num_wide}};
    return arena.has_room_for(wanted);
  };
  EXPECT_TRUE(has_room(narrow, 2 * wide));
  EXPECT_FALSE(has_room(narrow + 1, 2 * wide));
  EXPECT_FALSE(has_room(1, 2 * wide + 1));
  ASSERT_TRUE(arena.allocate(KvFormat::kF16, 64).has_value());
  EXPECT_TRUE(has_room(narrow - 1, 2 * wide));
  EXPECT_FALSE(has_room(narrow, 2 * wide));
  for (std::int64_t i = 0; i < 2 * wide; ++i) ASSERT_TRUE(arena.allocate(KvFormat::kF16, 256).has_value());
  EXPECT_FALSE(has_room(0, 1));
  EXPECT_TRUE(has_room(narrow - 1, 0));
  EXPECT_EQ(arena.used_bytes(KvFormat::kF16), arena.used_bytes());
}

TEST(CellArena, GivesNothingOfAClosedPage) {
  for (const std::size_t num_freed_while_closed : {0, 2, 3}) {
    CellArena arena(pages(4), kHeadDim, /*num_spare_pages=*/1);
    const std::int64_t per_page = pages(1) / cell_bytes(KvFormat::kQ8, kHeadDim);
    std::vector<KvCellRef> cells;
    for (std::int64_t i = 0; i < 3 * per_page; ++i) cells.push_back(*arena.allocate(KvFormat::kQ8, kHeadDim));
    for (std::int64_t i = 3; i < per_page; ++i) {  // three cells are left of each of the last two pages
      for (const std::int64_t page : {1, 2}) arena.free(cells[static_cast<std::size_t>(page * per_page + i)]);
    }
    ASSERT_TRUE(arena.close_sparse_pages(3));
    std::vector<KvCellRef> closed;
    for (const std::int64_t page : {1, 2}) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const KvCellRef cell = cells[static_cast<std::size_t>(page * per_page + i)];
        if (arena.is_closed(cell)) closed.push_back(cell);
      }
    }
    ASSERT_EQ(closed.size(), 3u);
    for (std::size_t i = 0; i < num_freed_while_closed; ++i) arena.free(closed[i]);
    const bool ran_empty = num_freed_while_closed == 3;
    EXPECT_EQ(arena.num_available(KvFormat::kQ8, kHeadDim), per_page - 3 + (ran_empty ? per_page : 0));
    std::int64_t num_given = 0;
    while (const auto cell = arena.allocate(KvFormat::kQ8, kHeadDim)) {
      EXPECT_TRUE(ran_empty || !arena.is_closed(*cell));
      ++num_given;
    }
    EXPECT_EQ(num_given, per_page - 3 + per_page + (ran_empty ? per_page : 0)) << "with the spare page";
    arena.reopen_pages();
    EXPECT_EQ(arena.num_available(KvFormat::kQ8, kHeadDim),
              (ran_empty ? 0 : per_page - 3 + static_cast<std::int64_t>(num_freed_while_closed)) - per_page);
  }
}

TEST(CellArena, RefusesACellThatItDidNotGive) {
  CellArena arena(pages(1), kHeadDim);
  const auto cell = arena.allocate(KvFormat::kF16, kHeadDim);
  ASSERT_TRUE(cell.has_value());
  EXPECT_DEATH(arena.free(KvCellRef(cell->offset(), KvFormat::kQ8)), "");
  arena.free(*cell);
  EXPECT_DEATH(arena.free(*cell), "");
}

}  // namespace
}  // namespace kvasir::kv::cell_arena_test
