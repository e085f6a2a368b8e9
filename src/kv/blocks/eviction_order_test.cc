#include "kv/blocks/eviction_order.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace kvasir::kv::eviction_order_test {
namespace {

constexpr CacheOwner kAnn{1}, kBob{2}, kEve{3};

class Evictions : public ::testing::Test {
 protected:
  // A new block of the owner's, which nobody holds any more.
  void add(int id, CacheOwner owner, double value) {
    order_.own(owner, 1);
    owners_[BlockId{id}] = owner;
    order_.add(BlockId{id}, owner, value, 0.0);
  }
  BlockId evict() {
    const BlockId first = order_.take_first();
    if (first == kHole) return first;
    order_.remove(first);
    order_.own(owners_[first], -1);
    return first;
  }
  std::vector<BlockId> drain() {
    std::vector<BlockId> gone;
    for (BlockId id = evict(); id != kHole; id = evict()) gone.push_back(id);
    return gone;
  }

  EvictionOrder order_{1024};
  std::map<BlockId, CacheOwner> owners_;
};

TEST_F(Evictions, TakeTheLeastValueFirstAndAmongEqualsTheOldest) {
  EXPECT_EQ(order_.take_first(), kHole);
  add(0, kAnn, 2.0);
  add(1, kAnn, 1.0);
  add(2, kAnn, 3.0);
  add(3, kAnn, 1.0);
  EXPECT_EQ(order_.by_priority(), (std::vector{BlockId{1}, BlockId{3}, BlockId{0}, BlockId{2}}));
  EXPECT_EQ(drain(), (std::vector{BlockId{1}, BlockId{3}, BlockId{0}, BlockId{2}}));
  EXPECT_EQ(order_.size(), 0);
}

TEST_F(Evictions, SpareABlockAsLongAsWhatNeedsIt) {
  order_.own(kAnn, 1);
  order_.own(kAnn, 1);
  const double tail = order_.add(BlockId{1}, kAnn, 5.0, 0.0);
  order_.add(BlockId{0}, kAnn, 1.0, tail);
  EXPECT_EQ(drain(), (std::vector{BlockId{1}, BlockId{0}}));
}

TEST_F(Evictions, CountOldHitsForLessTheMoreHasGone) {
  add(0, kAnn, 3.0);  // was asked for twice, long ago
  std::vector<BlockId> gone;
  for (int i = 1; i < 5; ++i) {
    add(i, kAnn, 1.0);
    gone.push_back(evict());
  }
  EXPECT_EQ(gone, (std::vector{BlockId{1}, BlockId{2}, BlockId{0}, BlockId{3}}))
      << "outlives two that were never asked for";
}

TEST_F(Evictions, GoOnWhenBlocksAreTakenFromTheMiddle) {
  for (int i = 0; i < 16; ++i) add(i, kAnn, static_cast<double>((i * 7) % 16));
  for (const int i : {3, 9, 0, 12}) order_.remove(BlockId{i});
  const std::vector<BlockId> expected = order_.by_priority();
  EXPECT_EQ(expected.size(), 12u);
  EXPECT_EQ(drain(), expected);
}

TEST_F(Evictions, OfAFloodLeaveTheOthersHalfOfAnEqualPart) {
  constexpr int kQuiet = 32;
  for (int i = 0; i < kQuiet; ++i) add(i, kAnn, 1.0);
  for (int i = 0; i < kQuiet; ++i) add(kQuiet + i, kBob, 1.0);
  int num_lost = 0;
  for (int i = 2 * kQuiet; i < 1024; ++i) {
    add(i, kEve, 9.0);  // worth more than all the others have
    if (i >= 96) num_lost += index_of(evict()) < 2 * kQuiet ? 1 : 0;
  }
  EXPECT_EQ(order_.size(), 96);
  EXPECT_EQ(num_lost, 2 * kQuiet / 2) << "of 96 an equal part is 32";
}

TEST_F(Evictions, TakeFirstFromWhoHasFarMoreThanAnEqualPart) {
  for (int i = 0; i < 12; ++i) add(i, kEve, 9.0);
  for (int i = 12; i < 14; ++i) add(i, kAnn, 1.0);
  for (int i = 14; i < 16; ++i) add(i, kBob, 1.0);
  for (int i = 0; i < 2; ++i) EXPECT_LT(index_of(evict()), 12);
}

TEST_F(Evictions, CountWhatAnOwnerHoldsAgainstIt) {
  order_.own(kEve, 20);  // sequences that run
  add(0, kAnn, 1.0);
  add(1, kEve, 9.0);
  EXPECT_EQ(evict(), BlockId{1});
  EXPECT_EQ(evict(), BlockId{0}) << "when nobody else can give";
}

}  // namespace
}  // namespace kvasir::kv::eviction_order_test
