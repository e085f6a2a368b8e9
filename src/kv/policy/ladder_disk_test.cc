// The ladder with a disk behind it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kv/blocks/block_pool.h"
#include "kv/policy/registry.h"
#include "kv/testing/kept_copies.h"

namespace kvasir::kv::ladder_disk_test {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr std::int32_t kNumBlocks = 64;

// A budget that the formats alone do not keep, and a disk.
class LadderWithDisk : public testing::Test {
 protected:
  LadderWithDisk() {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      blocks_.push_back(*pool_.allocate());
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
    attend(std::vector<float>(kNumBlocks, 1.0f));
  }
  void attend(const std::vector<float>& scores) {
    scores_.add({.num_blocks = kNumBlocks, .sum = scores, .greatest = scores, .num_queries = {16}});
  }
  // Does what the ladder says, and returns it.
  std::vector<CellAction> act() {
    std::vector<CellAction> actions;
    ladder_policy().plan({.cells = cells_,
                          .settings = settings_,
                          .costs = costs_,
                          .blocks = blocks_,
                          .num_full_blocks = kNumBlocks - 1,
                          .scores = &scores_,
                          .pool = &pool_,
                          .moves = &moves_},
                         actions);
    cells_.begin_demotions();
    for (const CellAction& action : actions) {
      const BlockId block = blocks_[static_cast<std::size_t>(action.block)];
      if (action.is_promotion(format(action.block))) {
        EXPECT_TRUE(cells_.promote(0, block, 0));
      } else if (action.to == KvFormat::kGhost) {
        EXPECT_TRUE(cells_.demote_to_ghost(0, block, 0, action.kept_as));
      } else {
        EXPECT_TRUE(cells_.demote(0, block, 0, action.to));
      }
      scores_.set_ghost(0, action.block, action.to == KvFormat::kGhost);
    }
    cells_.end_demotions();
    cells_.clear_conversions();
    return actions;
  }
  KvFormat format(std::int32_t block) const {
    return cells_.at(0, blocks_[static_cast<std::size_t>(block)], 0).format();
  }
  std::int32_t first_ghost() const {
    std::int32_t block = 0;
    while (format(block) != KvFormat::kGhost) ++block;
    return block;
  }

  static constexpr CellStore::Group kGroup = {.num_blocks = kNumBlocks, .cells_per_block = 1, .head_dim = kHeadDim};
  KeptCopies disk_;
  CellStore cells_{{&kGroup, 1},
                   KvFormat::kF16,
                   4 * CellArena::bytes_for(kNumBlocks, KvFormat::kF16, kHeadDim),
                   0,
                   {.file = &disk_, .bytes = std::int64_t{1} << 20}};
  BlockPool pool_{kNumBlocks};
  SequenceScores scores_{{.is_kept = true, .decay = 0.995f}, 1, kHeadDim, kNumBlocks};
  RecentMoves moves_;
  const FormatCosts costs_ = usual_format_costs();
  const KvPolicySettings settings_{.policy = &ladder_policy(), .budget_share = 0.15};
  std::vector<BlockId> blocks_;
};

TEST_F(LadderWithDisk, MakesGhostsWhereItWouldDropAndKeepsWhatTheyWere) {
  for (const CellAction& action : act()) {
    EXPECT_NE(action.to, KvFormat::kGone);
    if (action.to == KvFormat::kGhost) {
      EXPECT_EQ(action.kept_as, KvFormat::kK3V2);
    }
  }
  EXPECT_FALSE(disk_.written.empty());
}

TEST_F(LadderWithDisk, BringsAGhostBackThatIsAskedForAndOthersPay) {
  act();
  const std::int32_t ghost = first_ghost();
  std::vector<float> scores(kNumBlocks, 0.1f);
  scores[static_cast<std::size_t>(ghost)] = 16.0f;
  attend(scores);
  const std::vector<CellAction> actions = act();
  const auto promotion = std::ranges::find(actions, ghost, &CellAction::block);
  ASSERT_NE(promotion, actions.end());
  EXPECT_EQ(promotion->reason, ActionReason::kPromoted);
  EXPECT_EQ(format(ghost), KvFormat::kK3V2);
  const std::int64_t bookkeeping = kNumBlocks * bookkeeping_bytes_per_cell(true);
  EXPECT_LE(static_cast<double>(cells_.arena().used_bytes() + bookkeeping),
            settings_.budget_share * static_cast<double>(kNumBlocks * cells_.new_block_bytes(0)));
  EXPECT_TRUE(cells_.copies().find(0, blocks_[static_cast<std::size_t>(ghost)], 0).is_gone());
}

TEST_F(LadderWithDisk, LeavesAloneWhatHasJustMovedAndWhatOthersHold) {
  act();
  const std::int32_t ghost = first_ghost();
  std::vector<float> scores(kNumBlocks, 0.1f);
  scores[static_cast<std::size_t>(ghost)] = 16.0f;
  attend(scores);
  moves_.add({.block = ghost, .at_tokens = 100});
  act();
  EXPECT_EQ(format(ghost), KvFormat::kGhost);
  moves_.forget_before(131);
  EXPECT_EQ(moves_.moves().size(), 1u);
  moves_.forget_before(132);
  EXPECT_TRUE(moves_.moves().empty());
  pool_.add_reference(blocks_[static_cast<std::size_t>(ghost)]);
  act();
  EXPECT_EQ(format(ghost), KvFormat::kGhost);
  pool_.release(blocks_[static_cast<std::size_t>(ghost)], 1);
  act();
  EXPECT_EQ(format(ghost), KvFormat::kK3V2);
}

TEST_F(LadderWithDisk, MakesNoGhostOfABlockWithMassiveValues) {
  for (std::int32_t b = 0; b < kNumBlocks - 1; ++b) {
    scores_.set_statistic(0, b, -0.9f, b == kNumSinkBlocks ? 50.0f : 1.0f);
  }
  act();
  EXPECT_EQ(first_ghost(), kNumSinkBlocks + 1);
}

}  // namespace
}  // namespace kvasir::kv::ladder_disk_test
