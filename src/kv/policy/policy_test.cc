// What holds for every policy: pins, grace, one direction, and bytes that go down.
#include "kv/policy/policy.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr std::int32_t kNumBlocks = 64;
constexpr std::int32_t kNumCells = 6;

class EveryPolicy : public testing::TestWithParam<const KvPolicy*> {
 protected:
  EveryPolicy() {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      blocks_.push_back(BlockId{kNumBlocks - 1 - b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
  }

  const KvPolicy& policy() const { return *GetParam(); }
  std::vector<CellAction> plan(double budget_share) const {
    std::vector<CellAction> actions;
    policy().plan({.cells = cells_, .group = 0, .blocks = blocks_, .num_full_blocks = kNumBlocks - 1},
                  budget_share, actions);
    return actions;
  }
  void apply(const std::vector<CellAction>& actions) {
    cells_.begin_demotions();
    for (const CellAction& action : actions) {
      const BlockId block = blocks_[static_cast<std::size_t>(action.block)];
      if (action.to == KvFormat::kGone) {
        cells_.drop(0, block, action.cell);
      } else {
        ASSERT_TRUE(cells_.demote(0, block, action.cell, action.to));
      }
    }
    cells_.end_demotions();
    cells_.clear_conversions();
  }
  double share() const {
    return static_cast<double>(cells_.arena().used_bytes()) / (kNumBlocks * cells_.new_block_bytes(0));
  }

  static constexpr CellStore::Group kGroup = {.num_blocks = kNumBlocks, .cells_per_block = kNumCells};
  CellStore cells_{{&kGroup, 1},
                   KvFormat::kF16,
                   kHeadDim,
                   2 * CellStore::bytes_for({&kGroup, 1}, KvFormat::kF16, kHeadDim)};
  std::vector<BlockId> blocks_;
};
INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, testing::ValuesIn(policies().begin(), policies().end()),
                         [](const auto& param_info) { return std::string(param_info.param->name()); });

TEST_P(EveryPolicy, LeavesAloneWhatFits) { EXPECT_TRUE(plan(1.0).empty()); }

TEST_P(EveryPolicy, KeepsTheBudgetWithinItsPins) {
  for (double budget : {0.9, 0.5, 0.4, 0.33}) {
    const std::vector<CellAction> actions = plan(budget);
    EXPECT_FALSE(actions.empty()) << budget;
    apply(actions);
    EXPECT_LE(share(), budget);
  }
}

TEST_P(EveryPolicy, TouchesNeitherSinksNorNewBlocksAndNoCellTwice) {
  std::set<std::pair<std::int32_t, std::int32_t>> touched;
  for (const CellAction& action : plan(0.3)) {
    EXPECT_GE(action.block, kNumSinkBlocks);
    EXPECT_LT(action.block, kNumBlocks - 1 - kNumGraceBlocks);
    EXPECT_TRUE(touched.emplace(action.block, action.cell).second);
  }
}

TEST_P(EveryPolicy, PassesOverHoles) {
  for (std::int32_t b : {3, 4, 20}) {
    cells_.clear(0, blocks_[static_cast<std::size_t>(b)]);
    blocks_[static_cast<std::size_t>(b)] = kHole;
  }
  for (const CellAction& action : plan(0.4)) {
    EXPECT_NE(blocks_[static_cast<std::size_t>(action.block)], kHole);
  }
}

TEST(KvPolicyFingerprint, TellsPoliciesBudgetsAndFormatsApart) {
  const KvPolicy* uniform = find_policy("uniform");
  std::set<std::uint64_t> seen;
  for (KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
    for (const KvPolicySettings& settings :
         {KvPolicySettings{}, KvPolicySettings{uniform, 0.5}, KvPolicySettings{uniform, 0.4}}) {
      EXPECT_TRUE(seen.insert(policy_fingerprint(settings, format)).second);
    }
  }
  // A budget that nothing exceeds is no policy.
  EXPECT_EQ(policy_fingerprint({uniform, 1.0}, KvFormat::kF16), policy_fingerprint({}, KvFormat::kF16));
  EXPECT_EQ(find_policy("none"), nullptr);
}

}  // namespace
}  // namespace kvasir::kv
