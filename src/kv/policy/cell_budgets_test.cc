#include "kv/policy/cell_budgets.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::kv::cell_budgets_test {
namespace {

constexpr std::int32_t kHeadDim = 64;

// Budgets of three cells of 32 blocks, the weights being as given.
class CellBudgets : public testing::Test {
 protected:
  CellBudgets() {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      EXPECT_TRUE(cells_.fill(0, BlockId{b}));
      blocks_.push_back(BlockId{b});
    }
  }
  std::vector<std::int64_t> budgets(double budget_share, std::span<const float> weights) {
    settings_.budget_share = budget_share;
    const PolicyView view{.cells = cells_,
                          .settings = settings_,
                          .costs = costs_,
                          .blocks = blocks_,
                          .num_full_blocks = kNumBlocks,
                          .cell_weights = weights};
    allowed_ = view.allowed_bytes();
    return budgets_of_cells(view);
  }

  static constexpr std::int32_t kNumBlocks = 32;
  static constexpr CellStore::Group kGroup = {.num_blocks = kNumBlocks, .cells_per_block = 3, .head_dim = kHeadDim};
  CellStore cells_{{&kGroup, 1},
                   KvFormat::kF16,
                   2 * CellArena::bytes_for(kNumBlocks * 3, KvFormat::kF16, kHeadDim),
                   0};
  const FormatCosts costs_ = usual_format_costs();
  std::vector<BlockId> blocks_;
  KvPolicySettings settings_;
  std::int64_t allowed_ = 0;
};

TEST_F(CellBudgets, AreAlikeWithoutWeights) {
  const std::vector<std::int64_t> of_cells = budgets(0.3, {});
  EXPECT_EQ(of_cells, std::vector<std::int64_t>(3, allowed_));
}

TEST_F(CellBudgets, GiveMoreToWhatMattersMoreAndNoMoreInAll) {
  constexpr float kWeights[] = {0.1f, 30.0f, 1.0f};
  for (const double share : {0.9, 0.5, 0.3, 0.25, 0.2}) {
    SCOPED_TRACE(share);
    const std::vector<std::int64_t> of_cells = budgets(share, kWeights);
    EXPECT_GE(of_cells[1], of_cells[2]);
    EXPECT_GE(of_cells[2], of_cells[0]);
    EXPECT_GT(of_cells[1], of_cells[0]);
    EXPECT_EQ(of_cells[0] + of_cells[1] + of_cells[2], 3 * allowed_);
    EXPECT_LE(of_cells[1], kNumBlocks * cell_bytes(KvFormat::kF16, kHeadDim));
  }
}

// Cells that matter little become coarse, but are not dropped for that. Where formats do not do, all
// drop alike.
TEST_F(CellBudgets, TakeNothingBelowTheCoarsestFormatBeforeTheOthersAreThere) {
  constexpr float kWeights[] = {0.001f, 1000.0f, 1000.0f};
  const std::int64_t coarsest = kNumBlocks * cell_bytes(KvFormat::kK3V2, kHeadDim);
  EXPECT_EQ(budgets(0.3, kWeights)[0], coarsest);
  const std::vector<std::int64_t> of_cells = budgets(0.1, kWeights);
  for (const std::int64_t budget : of_cells) {
    EXPECT_LT(budget, coarsest);
    EXPECT_NEAR(static_cast<double>(budget), static_cast<double>(allowed_), 1.0);
  }
}

}  // namespace
}  // namespace kvasir::kv::cell_budgets_test
