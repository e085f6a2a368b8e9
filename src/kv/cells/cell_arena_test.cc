#include "kv/cells/cell_arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace kvasir::kv::cell_arena_test {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr KvFormat kFormats[] = {KvFormat::kF32,   KvFormat::kF16,  KvFormat::kQ8,    KvFormat::kK8V4,
                                 KvFormat::kK4cV4, KvFormat::kK4V4, KvFormat::kK4cV3, KvFormat::kK4V3,
                                 KvFormat::kK3cV3, KvFormat::kK3V3, KvFormat::kK4V2,  KvFormat::kK3cV2,
                                 KvFormat::kK3V2,  KvFormat::kGhost};

std::int64_t pages(std::int64_t count) { return count * CellArena::page_bytes(kHeadDim); }

TEST(CellArena, GivesOutAllOfItAndNoMore) {
  for (KvFormat format : kFormats) {
    SCOPED_TRACE(int(format));
    CellArena arena(pages(3), kHeadDim);
    const std::int64_t available = arena.num_available(format);
    EXPECT_EQ(available, 3 * (pages(1) / cell_bytes(format, kHeadDim)));
    for (std::int64_t i = 0; i < available; ++i) ASSERT_TRUE(arena.allocate(format).has_value());
    EXPECT_FALSE(arena.allocate(format).has_value());
    EXPECT_EQ(arena.num_available(format), 0);
    EXPECT_EQ(arena.reserved_bytes(), arena.capacity_bytes());
    EXPECT_EQ(arena.used_bytes(), available * cell_bytes(format, kHeadDim));
  }
}

TEST(CellArena, APageThatRanEmptyServesAnyFormat) {
  CellArena arena(pages(1), kHeadDim);
  const auto exact = arena.allocate(KvFormat::kF16);
  ASSERT_TRUE(exact.has_value());
  EXPECT_FALSE(arena.allocate(KvFormat::kQ8).has_value());
  arena.free(*exact);
  EXPECT_EQ(arena.reserved_bytes(), 0);
  EXPECT_TRUE(arena.allocate(KvFormat::kQ8).has_value());
}

// New cells fill the lowest page with room, so that a shrinking set of cells leaves whole pages behind.
TEST(CellArena, FillsTheLowestPageFirst) {
  CellArena arena(pages(4), kHeadDim);
  std::vector<KvCellRef> cells;
  while (auto cell = arena.allocate(KvFormat::kF16)) cells.push_back(*cell);
  const std::size_t per_page = cells.size() / 4;
  arena.free(cells[3 * per_page + 5]);
  arena.free(cells[per_page + 2]);
  EXPECT_EQ(arena.allocate(KvFormat::kF16), cells[per_page + 2]);
  EXPECT_EQ(arena.allocate(KvFormat::kF16), cells[3 * per_page + 5]);
}

// Random traffic against a plain map of byte ranges: nothing overlaps, nothing leaks.
TEST(CellArena, NeverGivesAByteTwice) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    CellArena arena(pages(6), kHeadDim);
    std::map<std::int64_t, KvCellRef> live;  // by offset
    std::int64_t used_bytes = 0;
    for (int step = 0; step < 6000; ++step) {
      const bool grows = random() % 1000 < (step / 1500 % 2 == 0 ? 700u : 300u);
      if (grows) {
        const KvFormat format = kFormats[random() % std::size(kFormats)];
        const std::int64_t available = arena.num_available(format);
        const auto cell = arena.allocate(format);
        ASSERT_EQ(cell.has_value(), available > 0);
        if (!cell) continue;
        ASSERT_EQ(arena.num_available(format), available - 1);
        const std::int64_t end = cell->offset() + cell_bytes(format, kHeadDim);
        ASSERT_LE(end, arena.capacity_bytes());
        const auto next = live.lower_bound(cell->offset());
        if (next != live.end()) {
          ASSERT_LE(end, next->first);
        }
        if (next != live.begin()) {
          const KvCellRef before = std::prev(next)->second;
          ASSERT_LE(before.offset() + cell_bytes(before.format(), kHeadDim), cell->offset());
        }
        live.emplace(cell->offset(), *cell);
        used_bytes += cell_bytes(format, kHeadDim);
      } else if (!live.empty()) {
        const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
        used_bytes -= cell_bytes(victim->second.format(), kHeadDim);
        arena.free(victim->second);
        live.erase(victim);
      }
      ASSERT_EQ(arena.used_bytes(), used_bytes);
      ASSERT_GE(arena.reserved_bytes(), used_bytes);
    }
    for (const auto& [offset, cell] : live) arena.free(cell);
    EXPECT_EQ(arena.used_bytes(), 0);
    EXPECT_EQ(arena.reserved_bytes(), 0);
  }
}

TEST(CellArena, GivesNothingOfAClosedPage) {
  for (const std::size_t num_freed_while_closed : {0, 2, 3}) {
    CellArena arena(pages(4), kHeadDim, /*num_spare_pages=*/1);
    const std::int64_t per_page = pages(1) / cell_bytes(KvFormat::kQ8, kHeadDim);
    std::vector<KvCellRef> cells;
    for (std::int64_t i = 0; i < 3 * per_page; ++i) cells.push_back(*arena.allocate(KvFormat::kQ8));
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
    EXPECT_EQ(arena.num_available(KvFormat::kQ8), per_page - 3 + (ran_empty ? per_page : 0));
    std::int64_t num_given = 0;
    while (const auto cell = arena.allocate(KvFormat::kQ8)) {
      EXPECT_TRUE(ran_empty || !arena.is_closed(*cell));
      ++num_given;
    }
    EXPECT_EQ(num_given, per_page - 3 + per_page + (ran_empty ? per_page : 0)) << "with the spare page";
    arena.reopen_pages();
    EXPECT_EQ(arena.num_available(KvFormat::kQ8),
              (ran_empty ? 0 : per_page - 3 + static_cast<std::int64_t>(num_freed_while_closed)) - per_page);
  }
}

TEST(CellArena, RefusesACellThatItDidNotGive) {
  CellArena arena(pages(1), kHeadDim);
  const auto cell = arena.allocate(KvFormat::kF16);
  ASSERT_TRUE(cell.has_value());
  EXPECT_DEATH(arena.free(KvCellRef(cell->offset(), KvFormat::kQ8)), "");
  arena.free(*cell);
  EXPECT_DEATH(arena.free(*cell), "");
}

}  // namespace
}  // namespace kvasir::kv::cell_arena_test
