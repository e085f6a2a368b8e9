// The rules of every policy: pins, grace, one direction, and bytes that go down.
#include "kv/policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kv/policy/formats.h"
#include "kv/policy/registry.h"

namespace kvasir::kv::policy_test {
namespace {

constexpr std::int32_t kHeadDim = 64;
constexpr std::int32_t kNumBlocks = 64;
constexpr std::int32_t kNumCells = 6;

class EveryPolicy : public testing::TestWithParam<const KvPolicy*> {
 protected:
  explicit EveryPolicy(KvFormat new_cells = KvFormat::kF16)
      : cells_({&kGroup, 1}, new_cells,
               2 * CellArena::bytes_for(kNumBlocks * kNumCells, KvFormat::kF16, kHeadDim), 0) {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      blocks_.push_back(BlockId{kNumBlocks - 1 - b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
    std::mt19937 random(5);
    std::exponential_distribution<float> score;
    StepScores step{.num_blocks = kNumBlocks};
    step.num_queries.assign(kNumCells, 100);
    for (std::int32_t i = 0; i < kNumCells * kNumBlocks; ++i) {
      step.sum.push_back(score(random));
      step.greatest.push_back(step.sum.back());
    }
    scores_.add(step);
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
      for (std::int32_t b = 0; b + 1 < kNumBlocks; ++b) scores_.set_statistic(cell, b, -score(random));
    }
  }

  const KvPolicy& policy() const { return *GetParam(); }
  std::vector<CellAction> plan(double budget_share, double max_lost_share = 1.0) const {
    std::vector<CellAction> actions;
    const KvPolicySettings settings{
        .policy = &policy(), .budget_share = budget_share, .max_lost_share = max_lost_share};
    policy().plan(view(settings), actions);
    return actions;
  }
  PolicyView view(const KvPolicySettings& settings) const {
    return {.cells = cells_,
            .settings = settings,
            .costs = costs_,
            .group = 0,
            .blocks = blocks_,
            .num_full_blocks = kNumBlocks - 1,
            .num_prompt_blocks = 8,
            .scores = &scores_};
  }
  // One query of each cell pays `attention` to each of the blocks [begin, end).
  void attend(std::int32_t begin, std::int32_t end, float attention) {
    StepScores step{.num_blocks = kNumBlocks};
    step.num_queries.assign(kNumCells, 1);
    step.sum.assign(std::size_t{kNumCells} * kNumBlocks, 0.0f);
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
      std::fill_n(step.sum.begin() + cell * kNumBlocks + begin, end - begin, attention);
    }
    step.greatest = step.sum;
    scores_.add(step);
  }
  void apply(const std::vector<CellAction>& actions) {
    cells_.begin_demotions();
    for (const CellAction& action : actions) {
      const BlockId block = blocks_[static_cast<std::size_t>(action.block)];
      if (action.to == KvFormat::kGone) {
        cells_.drop(0, block, action.cell);
        scores_.freeze(action.cell, action.block);
      } else {
        ASSERT_TRUE(cells_.demote(0, block, action.cell, action.to, action.block));
      }
    }
    cells_.end_demotions();
    cells_.clear_conversions();
  }
  // Carries out what the policy plans, which is to keep the budget and not much more.
  void expect_to_keep(double budget) {
    const std::vector<CellAction> actions = plan(budget);
    EXPECT_FALSE(actions.empty()) << budget;
    apply(actions);
    EXPECT_LE(share(), budget);
    if (policy().name() == "uniform") return;  // goes in large steps
    EXPECT_GT(share(), budget - 0.02) << "took more than it had to";
  }
  double share() const {
    const std::int64_t bookkeeping = kNumBlocks * kNumCells * kBookkeepingBytesPerCell;
    return static_cast<double>(cells_.arena().used_bytes() + bookkeeping) /
           static_cast<double>(kNumBlocks * kNumCells * cell_bytes(KvFormat::kF16, kHeadDim));
  }

  static constexpr KeyBasis kBases[kNumCells] = {};
  static constexpr CellStore::Group kGroup = {.num_blocks = kNumBlocks, .cells_per_block = kNumCells, .head_dim = kHeadDim, .key_bases = kBases};
  CellStore cells_;
  SequenceScores scores_{{.is_kept = true}, kNumCells, kHeadDim, kNumBlocks};
  FormatCosts costs_ = usual_format_costs();
  std::vector<BlockId> blocks_;
};
std::string policy_name(const testing::TestParamInfo<const KvPolicy*>& param_info) {
  std::string name(param_info.param->name());
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, testing::ValuesIn(policies().begin(), policies().end()),
                         policy_name);

// Shares are of the bytes in f16 here too.
class EveryPolicyOverQ12 : public EveryPolicy {
 protected:
  EveryPolicyOverQ12() : EveryPolicy(KvFormat::kQ12) {}
};
std::vector<const KvPolicy*> policies_with_budget() {
  std::vector<const KvPolicy*> with_budget;
  std::ranges::copy_if(policies(), std::back_inserter(with_budget), &KvPolicy::has_budget);
  return with_budget;
}
INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyOverQ12, testing::ValuesIn(policies_with_budget()),
                         policy_name);

class EveryPolicyWithBudget : public EveryPolicy {};
INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyWithBudget, testing::ValuesIn(policies_with_budget()), policy_name);

// The published H2O protects by score alone.
class EveryPolicyButH2o : public EveryPolicy {};
std::vector<const KvPolicy*> policies_but_h2o() {
  std::vector<const KvPolicy*> others;
  std::ranges::copy_if(policies(), std::back_inserter(others),
                       [](const KvPolicy* policy) { return policy->name() != "h2o"; });
  return others;
}
INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyButH2o, testing::ValuesIn(policies_but_h2o()), policy_name);

TEST_P(EveryPolicyOverQ12, LeavesAloneWhatFits) { EXPECT_TRUE(plan(0.78).empty()); }

TEST_P(EveryPolicyOverQ12, KeepsTheBudgetWithEverythingThatCounts) {
  for (double budget : {0.7, 0.5, 0.4, 0.33}) expect_to_keep(budget);
}

TEST_P(EveryPolicyWithBudget, LeavesAloneWhatFits) {
  EXPECT_TRUE(plan(1.0).empty());
}

TEST_P(EveryPolicyWithBudget, KeepsTheBudgetWithEverythingThatCounts) {
  for (double budget : {0.9, 0.5, 0.4, 0.33}) expect_to_keep(budget);
}

TEST_P(EveryPolicy, PlansEachCellOnceAndOnlyDownwards) {
  for (double budget : {0.6, 0.3}) {
    std::set<std::pair<std::int32_t, std::int32_t>> touched;
    const std::vector<CellAction> actions = plan(budget);
    for (const CellAction& action : actions) {
      const KvFormat present =
          cells_.at(0, blocks_[static_cast<std::size_t>(action.block)], action.cell).format();
      EXPECT_NE(present, KvFormat::kGone);
      EXPECT_TRUE(is_coarser(action.to, present));
      EXPECT_TRUE(touched.emplace(action.block, action.cell).second);
    }
    apply(actions);
  }
}

// A plain window lets the first tokens go.
TEST_P(EveryPolicyButH2o, DropsNeitherSinksNorBlocksThatFewQueriesHaveSeen) {
  for (const CellAction& action : plan(0.15)) {
    if (action.to != KvFormat::kGone) continue;
    EXPECT_GE(action.block, policy().name() == "window" ? 0 : kNumSinkBlocks);
    EXPECT_LT(action.block, kNumBlocks - 1 - kNumGraceBlocks);
  }
}

TEST_P(EveryPolicy, PassesOverWhatIsGone) {
  apply([] {
    std::vector<CellAction> gone;
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) gone.push_back({20, cell, KvFormat::kGone});
    return gone;
  }());
  for (const CellAction& action : plan(0.4)) EXPECT_NE(action.block, 20);
}

class Ladder : public EveryPolicy {};
INSTANTIATE_TEST_SUITE_P(Policies, Ladder,
                         testing::Values(&ladder_policy(), &pooled_ladder_policy(), &priced_ladder_policy()),
                         policy_name);
class LadderWithFloor : public EveryPolicy {};
INSTANTIATE_TEST_SUITE_P(Policies, LadderWithFloor,
                         testing::Values(&ladder_policy(), &pooled_ladder_policy()), policy_name);

TEST_P(LadderWithFloor, TakesFormatsBeforeItDropsAnything) {
  // Eight are worth so much that dropping others would cost less than making them as coarse as can be.
  attend(8, 16, 1e4f);
  for (const CellAction& action : plan(0.207)) EXPECT_NE(action.to, KvFormat::kGone);
  const std::vector<CellAction> actions = plan(0.1);
  EXPECT_TRUE(std::ranges::any_of(actions, [](const CellAction& a) { return a.to == KvFormat::kGone; }));
}

TEST_P(LadderWithFloor, PutsKeysInComponentsWhereFinerFormatsWouldNotDoForAll) {
  const auto num_to = [](const std::vector<CellAction>& actions, KvFormat format) { return std::ranges::count(actions, format, &CellAction::to); };
  EXPECT_EQ(num_to(plan(0.18), KvFormat::kK2pV2), 0) << "no cost says what it loses";
  costs_[KvFormat::kK2pV2] = 0.29f;
  EXPECT_EQ(num_to(plan(0.25), KvFormat::kK2pV2), 0);
  const std::vector<CellAction> actions = plan(0.18);
  EXPECT_GT(num_to(actions, KvFormat::kK2pV2), kNumCells * kNumBlocks / 4);
  EXPECT_EQ(num_to(actions, KvFormat::kGone), 0);
  for (const CellAction& action : actions) EXPECT_TRUE(action.block > 0 || action.to != KvFormat::kK2pV2);
  apply(actions);
  EXPECT_LE(share(), 0.18);
}

// Floors make forecasts add up to more than the attention there is, which is no bound where all may be lost.
TEST_P(Ladder, KeepsABudgetThatOnlyDropsKeep) {
  attend(kNumBlocks - 2, kNumBlocks - 1, 1e4f);  // few have seen it yet
  for (double budget : {0.15, 0.1, 0.06}) {
    apply(plan(budget));
    EXPECT_LE(share(), budget);
    EXPECT_GT(share(), budget - 0.01) << "took more than it had to";
  }
}

TEST_P(Ladder, LosesNoMoreForecastAttentionThanItMay) {
  constexpr double kMaxLost = 0.05;
  for (double budget : {0.12, 0.08}) {  // the second plan knows what the first one lost
    apply(plan(budget, kMaxLost));
    std::int32_t num_gone = 0;
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
      float lost = 0.0f, total = 0.0f;
      for (std::int32_t b = 0; b < kNumBlocks; ++b) {
        const float score = scores_.scores(cell)[static_cast<std::size_t>(b)];
        total += std::abs(score);
        if (score < 0.0f) lost -= score;
        num_gone += score < 0.0f ? 1 : 0;
      }
      EXPECT_LE(lost, kMaxLost * total);
    }
    EXPECT_GT(num_gone, 0);
  }
}

// The share of a memory of all queries that has seen a block: fewer have seen recent ones.
float seen(std::int32_t block) {
  return 1.0f - std::pow(0.995f, static_cast<float>((kNumBlocks - 2 - block) * kTokensPerBlock + 8));
}

TEST_P(Ladder, KeepsTheMostAttendedBlocksFinest) {
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) scores_.set_statistic(cell, b, -1.0f);
  }
  apply(plan(0.4));
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    const auto forecast = [&](std::int32_t b) {
      return scores_.scores(cell)[static_cast<std::size_t>(b)] / seen(b);
    };
    std::int32_t most = 0;
    for (std::int32_t b = 1; b < kNumBlocks - 1; ++b) most = forecast(b) > forecast(most) ? b : most;
    const auto finest = cells_.at(0, blocks_[static_cast<std::size_t>(most)], cell).format();
    for (std::int32_t b = 0; b < kNumBlocks - 1; ++b) {
      EXPECT_GE(cells_.at(0, blocks_[static_cast<std::size_t>(b)], cell).format(), finest);
    }
  }
}

// A block that gets so much more than the others that, forecast for forecast, they would all have to become
// coarser twice before it does once.
TEST_P(LadderWithFloor, TakesNotAllBitsOfQuietBlocksForABusyOne) {
  constexpr std::int32_t kBusy = 20;
  const KvPolicySettings settings{.policy = &policy()};
  const std::vector<Rung> rungs = ladder_of(view(settings));
  const float dearer = loss_per_byte(rungs[1], rungs[2]) / loss_per_byte(rungs[0], rungs[1]);
  const float busy_means = std::pow(dearer, 1.5f);
  ASSERT_LT(busy_means, kNumBlocks / 2);
  SequenceScores scores({.is_kept = true}, kNumCells, kHeadDim, kNumBlocks);
  StepScores step{.num_blocks = kNumBlocks};
  step.num_queries.assign(kNumCells, 1);
  for (std::int32_t i = 0; i < kNumCells * kNumBlocks; ++i) {
    const std::int32_t block = i % kNumBlocks, num_full = kNumBlocks - 1;
    const float busy =
        busy_means * static_cast<float>(num_full - 1) / (static_cast<float>(num_full) - busy_means);
    step.sum.push_back((block == kBusy ? busy : 1.0f) * seen(block));
  }
  step.greatest = step.sum;
  scores.add(step);
  scores_ = scores;
  const auto fine = static_cast<double>(rungs[0].bytes), coarse = static_cast<double>(rungs[1].bytes);
  const double all_coarser =
      ((kNumBlocks - 1) * coarse + fine) / (kNumBlocks * fine) + kBookkeepingBytesPerCell / fine;
  std::int32_t num_busy = 0;
  for (const CellAction& action : plan(all_coarser)) {
    EXPECT_EQ(action.to, rungs[1].format) << action.block;
    num_busy += action.block == kBusy ? 1 : 0;
  }
  EXPECT_EQ(num_busy, kNumCells);
}

// Text that nobody has asked about yet: no attention, but keys unlike all others.
TEST_P(Ladder, KeepsABlockWhoseKeysAreUnlikeTheOthers) {
  SequenceScores scores({.is_kept = true}, kNumCells, kHeadDim, kNumBlocks);
  StepScores step{.num_blocks = kNumBlocks};
  step.num_queries.assign(kNumCells, 1);
  step.sum.assign(std::size_t{kNumCells} * kNumBlocks, 1.0f);
  for (std::int32_t cell = 0; cell < kNumCells; ++cell)
    step.sum[static_cast<std::size_t>(cell * kNumBlocks + 30)] = 0.0f;
  step.greatest = step.sum;
  scores.add(step);
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    for (std::int32_t b = 0; b < kNumBlocks - 1; ++b) scores.set_statistic(cell, b, b == 30 ? -0.1f : -0.9f);
  }
  scores_ = scores;
  for (const CellAction& action : plan(0.15)) {
    EXPECT_FALSE(action.block == 30 && action.to == KvFormat::kGone);
  }
}

// Nobody looks at it, its keys are like all others, but its values are long.
TEST_P(Ladder, KeepsABlockWithMassiveValues) {
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    for (std::int32_t b = 0; b < kNumBlocks - 1; ++b) {
      scores_.set_statistic(cell, b, b == 30 ? -1.0f : -0.9f, b == 30 ? 50.0f : 1.0f);
    }
  }
  const std::vector<CellAction> actions = plan(0.08);
  EXPECT_TRUE(std::ranges::any_of(actions, [](const CellAction& a) { return a.to == KvFormat::kGone; }));
  for (const CellAction& action : actions) {
    EXPECT_FALSE(action.block == 30 && action.to == KvFormat::kGone);
  }
}

// What a method of the literature leaves exact, and in which format the rest is.
struct PublishedMethod {
  const char* name;
  KvFormat format;
  std::int32_t num_first, num_newest;
};
constexpr PublishedMethod kPublishedMethods[] = {{"kivi-4", KvFormat::kK4cV4, 0, 8},
                                                 {"kvquant-plain-4", KvFormat::kK4cV4, 1, 0},
                                                 {"kvquant-plain-3", KvFormat::kK3cV3, 1, 0}};
class PublishedFormat : public EveryPolicy {};
INSTANTIATE_TEST_SUITE_P(Policies, PublishedFormat,
                         testing::Values(find_policy("kivi-4"), find_policy("kvquant-plain-4"), find_policy("kvquant-plain-3")),
                         policy_name);

TEST_P(PublishedFormat, LeavesExactWhatTheMethodDoes) {
  const PublishedMethod& method = *std::ranges::find(kPublishedMethods, policy().name(), &PublishedMethod::name);
  apply(plan(1.0));
  for (std::int32_t b = 0; b < kNumBlocks; ++b) {
    const bool is_exact = b < method.num_first || b >= kNumBlocks - 1 - method.num_newest;
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
      EXPECT_EQ(cells_.at(0, blocks_[static_cast<std::size_t>(b)], cell).format(), is_exact ? KvFormat::kF16 : method.format) << b;
    }
  }
  EXPECT_TRUE(plan(1.0).empty()) << "it has done all";
}

TEST(KvPolicyFingerprint, TellsPoliciesBudgetsAndFormatsApart) {
  const KvPolicy* uniform = find_policy("uniform");
  std::set<std::uint64_t> seen;
  for (KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
    for (const KvPolicySettings& settings :
         {KvPolicySettings{}, KvPolicySettings{uniform, 0.5}, KvPolicySettings{uniform, 0.4},
          KvPolicySettings{&ladder_policy(), 0.4},
          KvPolicySettings{.policy = &ladder_policy(), .budget_share = 0.4, .max_lost_share = 0.02}}) {
      EXPECT_TRUE(seen.insert(policy_fingerprint(settings, format)).second);
    }
  }
  // A budget that nothing exceeds is no policy.
  EXPECT_EQ(policy_fingerprint({uniform, 1.0}, KvFormat::kF16), policy_fingerprint({}, KvFormat::kF16));
  EXPECT_EQ(find_policy("none"), nullptr);
}

}  // namespace
}  // namespace kvasir::kv::policy_test
