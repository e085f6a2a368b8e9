#include "kv/cells/cell_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "base/process_memory.h"

namespace kvasir::kv::cell_store_test {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr std::int32_t kNumSparePages = 4;

// Two groups of different width that share one memory.
std::vector<CellStore::Group> two_groups() {
  return {{.num_blocks = 40, .cells_per_block = 3}, {.num_blocks = 20, .cells_per_block = 5}};
}

// The bytes of f16 cells for every block.
std::int64_t bytes_for(const std::vector<CellStore::Group>& groups) {
  std::int64_t num_cells = 0;
  for (const CellStore::Group& group : groups) num_cells += group.num_blocks * group.cells_per_block;
  return CellArena::bytes_for(num_cells, KvFormat::kF16, kHeadDim);
}

std::int64_t with_spare(std::int64_t capacity_bytes) {
  return capacity_bytes + kNumSparePages * CellArena::page_bytes(kHeadDim);
}

CellStore store_of(const std::vector<CellStore::Group>& groups) {
  return CellStore(groups, KvFormat::kF16, with_spare(bytes_for(groups)), kNumSparePages);
}

TEST(CellStore, SaysWhichBasisKeysBecomeComponentsByAndWhere) {
  const KeyBasis bases[3] = {};
  const CellStore::Group group{.num_blocks = 8, .cells_per_block = 3, .head_dim = 64, .key_bases = bases};
  CellStore store({&group, 1}, KvFormat::kF16, 4 * CellArena::bytes_for(8 * 3, KvFormat::kF16, 64), 2);
  ASSERT_TRUE(store.fill(0, BlockId{5}));
  store.begin_demotions();
  ASSERT_TRUE(store.demote(0, BlockId{5}, 2, KvFormat::kK2pV2, 7));
  store.end_demotions();
  ASSERT_EQ(store.conversions().all().size(), 1u);
  EXPECT_EQ(store.conversions().all().front().basis, &bases[2]);
  EXPECT_EQ(store.conversions().all().front().block, 7);
  EXPECT_EQ(store.at(0, BlockId{5}, 2).format(), KvFormat::kK2pV2);
}

TEST(CellStore, HasRoomForEveryBlockAsPromised) {
  const auto groups = two_groups();
  CellStore store = store_of(groups);
  std::set<std::int64_t> offsets;
  for (std::int32_t g = 0; g < 2; ++g) {
    for (std::int32_t b = 0; b < groups[static_cast<std::size_t>(g)].num_blocks; ++b) {
      ASSERT_TRUE(store.fill(g, BlockId{b}));
      for (std::int32_t c = 0; c < store.cells_per_block(g); ++c) {
        EXPECT_EQ(store.at(g, BlockId{b}, c).format(), KvFormat::kF16);
        EXPECT_TRUE(offsets.insert(store.at(g, BlockId{b}, c).offset()).second);
      }
    }
  }
  EXPECT_EQ(store.bytes(1, BlockId{7}), store.new_block_bytes(1));
}

TEST(CellStore, TheDirectoryIsWhatAttentionReads) {
  CellStore store = store_of(two_groups());
  const CellDirectory directory = store.directory(1);
  ASSERT_TRUE(store.fill(1, BlockId{4}));
  EXPECT_EQ(directory.at(BlockId{4}, 2), store.at(1, BlockId{4}, 2));
  store.clear(1, BlockId{4});
  EXPECT_TRUE(directory.at(BlockId{4}, 2).is_gone());
  EXPECT_EQ(store.bytes(1, BlockId{4}), 0);
}

TEST(CellStore, ALargeDirectoryCostsMemoryOnlyWhereBlocksAreInUse) {
  const std::vector<CellStore::Group> groups = {{.num_blocks = 1 << 18, .cells_per_block = 64}};
  const std::int64_t directory_bytes = (std::int64_t{1} << 18) * 64 * std::int64_t{sizeof(KvCellRef)};
  const std::int64_t cells_bytes = CellArena::bytes_for(4 * 64, KvFormat::kF16, kHeadDim);
  CellStore store(groups, KvFormat::kF16, with_spare(cells_bytes), kNumSparePages);
  const std::int64_t before = rss_bytes();
  for (std::int32_t b = 0; b < 4; ++b) ASSERT_TRUE(store.fill(0, BlockId{b}));
  EXPECT_LT(rss_bytes() - before, directory_bytes / 16);  // in huge pages it is all of it
}

TEST(CellStore, BlocksThatAreFilledTogetherHaveEachOfTheirCellsSideBySide) {
  CellStore store = store_of(two_groups());
  const BlockId blocks[] = {BlockId{4}, BlockId{0}, BlockId{7}};
  ASSERT_TRUE(store.fill(1, blocks, store.cells_per_block(1)));
  const std::int64_t bytes = cell_bytes(KvFormat::kF16, store.head_dim(0));
  std::int64_t offset = 0;
  for (std::int32_t cell = 0; cell < store.cells_per_block(1); ++cell) {
    for (const BlockId block : blocks) {
      EXPECT_EQ(store.at(1, block, cell).offset(), offset);
      offset += bytes;
    }
  }
}

TEST(CellStore, ADemotedCellGivesItsMemoryBackAfterTheLastDemotion) {
  CellStore store = store_of(two_groups());
  ASSERT_TRUE(store.fill(0, BlockId{0}));
  const std::int64_t exact = store.arena().used_bytes();
  const KvCellRef before = store.at(0, BlockId{0}, 1);
  store.begin_demotions();
  ASSERT_TRUE(store.demote(0, BlockId{0}, 1, KvFormat::kQ8, 0));
  EXPECT_EQ(store.arena().used_bytes(), exact + cell_bytes(KvFormat::kQ8, kHeadDim));
  store.drop(0, BlockId{0}, 2);
  store.end_demotions();
  EXPECT_EQ(store.arena().used_bytes(),
            cell_bytes(KvFormat::kF16, kHeadDim) + cell_bytes(KvFormat::kQ8, kHeadDim));
  EXPECT_EQ(store.bytes(0, BlockId{0}), store.arena().used_bytes());
  ASSERT_EQ(store.conversions().all().size(), 1u);
  EXPECT_EQ(store.conversions().all()[0].from, before);
  EXPECT_EQ(store.conversions().all()[0].to, store.at(0, BlockId{0}, 1));
  EXPECT_TRUE(store.at(0, BlockId{0}, 2).is_gone());
  store.clear(0, BlockId{0});
  EXPECT_EQ(store.arena().used_bytes(), 0);
}

TEST(CellStore, EveryGroupHasCellsOfItsOwnWidth) {
  const std::vector<CellStore::Group> groups = {{.num_blocks = 64, .cells_per_block = 2, .head_dim = 256},
                                                {.num_blocks = 64, .cells_per_block = 3, .head_dim = 128}};
  const std::int64_t page_bytes = CellArena::page_bytes(256);
  CellStore store(groups, KvFormat::kF16, (8 + kNumSparePages) * page_bytes, kNumSparePages);
  ASSERT_TRUE(store.fill(0, BlockId{0}));
  ASSERT_TRUE(store.fill(1, BlockId{0}));
  EXPECT_EQ(store.bytes(0, BlockId{0}), 2 * cell_bytes(KvFormat::kF16, 256));
  EXPECT_EQ(store.bytes(1, BlockId{0}), 3 * cell_bytes(KvFormat::kF16, 128));
  EXPECT_EQ(store.new_block_bytes(1), store.bytes(1, BlockId{0}));
  store.begin_demotions();
  ASSERT_TRUE(store.demote(0, BlockId{0}, 1, KvFormat::kK4V4, 0));
  ASSERT_TRUE(store.demote(1, BlockId{0}, 2, KvFormat::kK4V4, 0));
  store.end_demotions();
  ASSERT_EQ(store.conversions().all().size(), 2u);
  EXPECT_EQ(store.conversions().all()[0].head_dim, 256);
  EXPECT_EQ(store.conversions().all()[1].head_dim, 128);
  EXPECT_EQ(store.arena().used_bytes(KvFormat::kK4V4),
            cell_bytes(KvFormat::kK4V4, 256) + cell_bytes(KvFormat::kK4V4, 128));
  // Eight pages beside the spare ones, of which each width has begun one of f16 and one of k4v4.
  const auto has_room = [&](std::int64_t wide_cells, std::int64_t narrow_cells) {
    const std::int32_t num_blocks[] = {static_cast<std::int32_t>(wide_cells / 2),
                                       static_cast<std::int32_t>(narrow_cells / 3)};
    return store.has_room_for(num_blocks);
  };
  const std::int64_t wide = page_bytes / cell_bytes(KvFormat::kF16, 256);
  EXPECT_TRUE(has_room(4 * wide, 0));
  EXPECT_FALSE(has_room(6 * wide, 0));
  EXPECT_TRUE(has_room(2 * wide, 4 * wide));
  EXPECT_FALSE(has_room(4 * wide, 4 * wide));
  store.clear(0, BlockId{0});
  store.clear(1, BlockId{0});
  EXPECT_EQ(store.arena().used_bytes(), 0);
}

// A conversion's source must still be there when the runtime gets to it: targets never overlap sources.
TEST(CellStore, DemotionsPlannedTogetherDoNotWriteWhereOthersRead) {
  const std::vector<CellStore::Group> groups = {{.num_blocks = 64, .cells_per_block = 3}};
  CellStore store(groups, KvFormat::kF16, with_spare(2 * bytes_for(groups)), kNumSparePages);
  for (std::int32_t b = 0; b < 64; ++b) ASSERT_TRUE(store.fill(0, BlockId{b}));
  store.begin_demotions();
  for (std::int32_t b = 0; b < 64; ++b) {
    for (std::int32_t c = 0; c < 3; ++c) ASSERT_TRUE(store.demote(0, BlockId{b}, c, KvFormat::kK4V4, b));
  }
  store.end_demotions();
  for (const CellConversion& writes : store.conversions().all()) {
    const std::int64_t end = writes.to.offset() + cell_bytes(KvFormat::kK4V4, kHeadDim);
    for (const CellConversion& reads : store.conversions().all()) {
      const std::int64_t source_end = reads.from.offset() + cell_bytes(KvFormat::kF16, kHeadDim);
      EXPECT_TRUE(end <= reads.from.offset() || source_end <= writes.to.offset());
    }
  }
}

// The owner of every 32 bytes. Cells are known by where they lay at first.
class Contents {
 public:
  explicit Contents(const CellStore& store)
      : owners_(static_cast<std::size_t>(store.arena().capacity_bytes() / kBytes)) {
    std::iota(owners_.begin(), owners_.end(), 0);
    for (std::int64_t& owner : owners_) owner *= kBytes;
  }
  // All that a round reads it reads before it writes: what it writes must be nobody's.
  void run(std::span<const CellConversion> round) {
    std::vector<std::int64_t> read;
    for (const CellConversion& conversion : round) read.push_back(of(conversion.from));
    for (std::size_t i = 0; i < round.size(); ++i) std::ranges::fill(bytes_of(round[i].to), read[i]);
    for (std::size_t i = 0; i < round.size(); ++i) {
      EXPECT_EQ(of(round[i].from), read[i]) << "read and written in one round";
      EXPECT_EQ(of(round[i].to), read[i]) << "written twice in one round";
    }
  }
  std::int64_t of(KvCellRef cell) const { return owners_[static_cast<std::size_t>(cell.offset() / kBytes)]; }

 private:
  static constexpr std::int64_t kBytes = 32;  // no cell is smaller, and all are multiples

  std::span<std::int64_t> bytes_of(KvCellRef cell) {
    return std::span(owners_).subspan(static_cast<std::size_t>(cell.offset() / kBytes),
                                      static_cast<std::size_t>(cell_bytes(cell.format(), kHeadDim) / kBytes));
  }

  std::vector<std::int64_t> owners_;
};

// A store without a free page, the cells of which become coarser as a test says.
class FullCellStore : public testing::Test {
 protected:
  static constexpr std::int32_t kNumBlocks = 2048, kNumCells = 4;

  FullCellStore() : contents_(store_) {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      EXPECT_TRUE(store_.fill(0, BlockId{b}));
      for (std::int32_t c = 0; c < kNumCells; ++c) before_.push_back(at(b, c).offset());
    }
    EXPECT_EQ(store_.arena().num_available(KvFormat::kF16, kHeadDim), 0);
  }
  KvCellRef at(std::int32_t block, std::int32_t cell) const { return store_.at(0, BlockId{block}, cell); }
  // Runs the conversions; every cell must have what it had.
  void convert() {
    store_.conversions().for_each_round([&](std::span<const CellConversion> round) {
      ++num_rounds_;
      contents_.run(round);
    });
    std::size_t i = 0;
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      for (std::int32_t c = 0; c < kNumCells; ++c) ASSERT_EQ(contents_.of(at(b, c)), before_[i++]);
    }
  }

  CellStore store_ = store_of({{.num_blocks = kNumBlocks, .cells_per_block = kNumCells}});
  Contents contents_;
  std::vector<std::int64_t> before_;  // where each cell lay
  std::int32_t num_rounds_ = 0;
};

// A round writes where the one before it has read, and nowhere else but where nothing was.
TEST_F(FullCellStore, BecomesCoarserInRounds) {
  const auto wanted = [](std::int32_t b, std::int32_t c) {
    constexpr KvFormat kFormats[] = {KvFormat::kQ8, KvFormat::kK8V4, KvFormat::kK4V4, KvFormat::kK3V2};
    return kFormats[(b / 3 + c) % 4];
  };
  store_.begin_demotions();
  for (std::int32_t b = 0; b < kNumBlocks; ++b) {
    for (std::int32_t c = 0; c < kNumCells; ++c) ASSERT_TRUE(store_.demote(0, BlockId{b}, c, wanted(b, c), b));
  }
  store_.end_demotions();
  EXPECT_GT(store_.arena().num_available(KvFormat::kF16, kHeadDim), kNumBlocks * kNumCells / 2);
  convert();
  EXPECT_GT(num_rounds_, 1);
  EXPECT_LT(num_rounds_, 20);  // each has more room than the one before
}

// Half of each page becomes coarser, and half of it stays: none runs empty by itself.
TEST_F(FullCellStore, GathersWhatStaysWhereNoPageRunsEmpty) {
  std::int32_t num_gathered = 0;
  store_.begin_demotions();
  for (std::int32_t b = 0; b < kNumBlocks; ++b) {
    for (std::int32_t c = 0; c < kNumCells; c += 2) {
      while (!store_.demote(0, BlockId{b}, c, KvFormat::kK8V4, b)) {
        ASSERT_TRUE(store_.gather()) << "block " << b;
        ++num_gathered;
      }
    }
  }
  store_.end_demotions();
  EXPECT_GT(num_gathered, 0);
  EXPECT_LT(num_gathered, 40);
  convert();
  for (std::int32_t b = 0; b < kNumBlocks; ++b) {
    for (std::int32_t c = 0; c < kNumCells; ++c) {
      ASSERT_EQ(at(b, c).format(), c % 2 == 0 ? KvFormat::kK8V4 : KvFormat::kF16);
    }
  }
  EXPECT_FALSE(store_.arena().reserved_bytes() > store_.arena().capacity_bytes() * 9 / 10);
}

TEST_F(FullCellStore, HasNothingToGatherWhereAllPagesAreFull) {
  store_.begin_demotions();
  EXPECT_FALSE(store_.gather());
  store_.end_demotions();
  convert();
  EXPECT_EQ(num_rounds_, 0);
}

// Every other block of a full store goes: half of the memory is free, and no page of it.
TEST(CellStore, MovesCellsOfSparsePagesTogetherUntilPagesAreFree) {
  const std::vector<CellStore::Group> groups = {{.num_blocks = 256, .cells_per_block = 4}};
  CellStore store = store_of(groups);
  for (std::int32_t b = 0; b < 256; ++b) ASSERT_TRUE(store.fill(0, BlockId{b}));
  store.begin_demotions();
  for (std::int32_t b = 0; b < 256; ++b) {
    for (std::int32_t c = 0; c < 4; ++c) {
      if ((b * 4 + c) % 2 == 0) store.drop(0, BlockId{b}, c);
    }
  }
  store.end_demotions();
  const CellArena& arena = store.arena();
  ASSERT_EQ(arena.reserved_bytes(), bytes_for(groups));
  store.begin_demotions();
  store.end_demotions();
  EXPECT_EQ(arena.reserved_bytes(), arena.used_bytes());
  // Sources were written before the step, and nothing is written where a source lies.
  std::set<std::int64_t> sources, targets;
  for (const CellConversion& move : store.conversions().all()) {
    EXPECT_EQ(move.from.format(), move.to.format());
    EXPECT_TRUE(sources.insert(move.from.offset()).second && targets.insert(move.to.offset()).second);
  }
  for (const std::int64_t target : targets) EXPECT_FALSE(sources.contains(target));
  std::set<std::int64_t> offsets;
  for (std::int32_t b = 0; b < 256; ++b) {
    for (std::int32_t c = 0; c < 4; ++c) {
      const KvCellRef ref = store.at(0, BlockId{b}, c);
      EXPECT_EQ(ref.is_gone(), (b * 4 + c) % 2 == 0);
      EXPECT_TRUE(ref.is_gone() || offsets.insert(ref.offset()).second);
    }
  }
}

TEST(CellStore, RefusesToMakeACellFiner) {
  CellStore store = store_of(two_groups());
  ASSERT_TRUE(store.fill(0, BlockId{0}));
  store.begin_demotions();
  EXPECT_DEATH(store.demote(0, BlockId{0}, 0, KvFormat::kF32, 0), "");
}

}  // namespace
}  // namespace kvasir::kv::cell_store_test
