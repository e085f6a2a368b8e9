// A journal is told the changes that happened to the cells.
#include "kv/policy/policy_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kv/kv_cache_manager.h"
#include "kv/policy/registry.h"
#include "kv/testing/recording_journal.h"

namespace kvasir::kv::policy_recorder_test {
namespace {

constexpr std::int32_t kNumCells = 4;

class Recorded : public testing::Test {
 protected:
  SequenceKv hold(const KvPolicySettings& settings, std::int32_t num_tokens) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(num_tokens));
    std::iota(tokens.begin(), tokens.end(), TokenId{0});
    SequenceKv kv = manager_.open("", true, num_tokens, settings);
    manager_.match_prefix(kv, tokens);
    EXPECT_TRUE(manager_.allocate(kv, num_tokens));
    manager_.commit(kv, tokens, num_tokens);
    return kv;
  }
  // More tokens of a sequence that has no prompt in common with others, and attention to all of them.
  void grow(SequenceKv& kv, std::int32_t num_tokens) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(num_tokens), TokenId{7});
    const std::int32_t num_new = num_tokens - kv.num_computed_tokens;
    ASSERT_TRUE(manager_.allocate(kv, num_tokens));
    manager_.commit(kv, tokens, num_tokens);
    if (kv.scores.empty()) return;
    StepScores step{.num_blocks = blocks_for(num_tokens)};
    step.num_queries.assign(kNumCells, num_new);
    std::exponential_distribution<float> attention;
    for (std::int32_t i = 0; i < kNumCells * step.num_blocks; ++i) step.sum.push_back(attention(random_));
    step.greatest = step.sum;
    kv.scores[0].add(step);
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
      for (std::int32_t b = 0; b < num_tokens / kTokensPerBlock; ++b)
        kv.scores[0].set_statistic(cell, b, 0.0f);
    }
  }
  void act(std::vector<SequenceKv*> planning, std::vector<SequenceKv*> pending = {}) {
    manager_.demotion().begin();
    for (SequenceKv* kv : planning) manager_.demotion().demote(*kv, kv->num_computed_tokens, 64);
    if (!pending.empty()) manager_.demotion().demote_shared(pending);
    manager_.demotion().end();
    manager_.forget_conversions();
  }
  KvFormat format_of(const SequenceKv& kv, std::int32_t cell, std::int32_t block) const {
    return manager_.cells().at(0, kv.table(0)[block], cell).format();
  }

  RecordingJournal journal_;
  KvCacheManager manager_{{.groups = {{.num_blocks = 256, .cells_per_block = kNumCells}},
                           .prefix_hash_key = {3, 4},
                           .journal = &journal_}};
  std::mt19937 random_{11};
};

TEST_F(Recorded, ActionsReplayedGiveTheFormatsOfTheCells) {
  for (const KvPolicy* policy : policies()) {
    SCOPED_TRACE(std::string(policy->name()));
    journal_.steps.clear();
    SequenceKv kv = manager_.open("", false, 640, {.policy = policy, .budget_share = 0.2});
    ReplayedCells replayed(KvFormat::kF16);
    for (std::int32_t num_tokens = 40; num_tokens <= 640; num_tokens += 40) {
      grow(kv, num_tokens);
      const std::size_t first = journal_.steps.size();
      act({&kv});
      for (std::size_t i = first; i < journal_.steps.size(); ++i)
        ASSERT_TRUE(replayed.apply(journal_.steps[i]));
      for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
        for (std::int32_t block = 0; block < kv.table(0).size(); ++block) {
          EXPECT_EQ(replayed.format(0, cell, block), format_of(kv, cell, block));
        }
      }
    }
    EXPECT_EQ(journal_.steps.size(), 16u);  // every time another block was full
    manager_.free(kv);
  }
}

TEST_F(Recorded, AStepSaysHowManyBytesAndCellsAreLeft) {
  SequenceKv kv = manager_.open("", false, 640, {.policy = &ladder_policy(), .budget_share = 0.1});
  double sum = 0.0;
  for (std::int32_t num_tokens : {320, 640}) {
    grow(kv, num_tokens);
    act({&kv});
    const StepRecord& step = journal_.steps.back();
    EXPECT_EQ(step.num_computed_tokens, num_tokens);
    EXPECT_EQ(std::accumulate(step.num_cells.begin(), step.num_cells.end(), 0),
              num_tokens / kTokensPerBlock * kNumCells);
    std::int64_t bytes = kBookkeepingBytesPerCell * kNumCells * num_tokens / kTokensPerBlock;
    for (int i = 0; i < kNumKvFormats; ++i) {
      bytes += step.num_cells[static_cast<std::size_t>(i)] * cell_bytes(static_cast<KvFormat>(i), 64);
    }
    EXPECT_DOUBLE_EQ(
        step.bytes_share_after,
        static_cast<double>(bytes) /
            static_cast<double>(num_tokens / kTokensPerBlock * kNumCells * cell_bytes(KvFormat::kF16, 64)));
    EXPECT_GT(step.bytes_share_before, step.bytes_share_after);
    EXPECT_GT(step.num_cells[static_cast<std::size_t>(KvFormat::kGone)], 0);
    EXPECT_GT(step.lost_share_max, 0.0f);
    EXPECT_LE(step.lost_share_mean, step.lost_share_max);
    EXPECT_LT(step.lost_share_max, 1.0f);
    sum += step.bytes_share_after;
  }
  EXPECT_DOUBLE_EQ(kv.bytes_use.mean_share(), sum / 2);
  const StepRecord& last = journal_.steps.back();
  EXPECT_EQ(kv.bytes_use.last().num_dropped_cells, last.num_cells[static_cast<std::size_t>(KvFormat::kGone)]);
  EXPECT_EQ(kv.bytes_use.last().num_cells, std::accumulate(last.num_cells.begin(), last.num_cells.end(), 0));
  manager_.free(kv);
}

TEST_F(Recorded, TheLadderForecastsWhatItPaysForAndOthersSayWhyTheyDropped) {
  const auto first_action = [&](std::string_view policy) {
    SequenceKv kv = manager_.open("", false, 640, {.policy = find_policy(policy), .budget_share = 0.3});
    grow(kv, 640);
    act({&kv});
    manager_.free(kv);
    return journal_.steps.back().actions.at(0);
  };
  const ActionRecord ladder = first_action("ladder");
  EXPECT_EQ(ladder.reason, ActionReason::kLeastLossPerByte);
  // One step of attention came, so what is expected of each of 640 queries is far less than what is in
  // memory.
  EXPECT_GT(ladder.forecast, 0.0f);
  EXPECT_GT(ladder.score, 0.0f);
  EXPECT_LT(ladder.forecast, ladder.score);
  EXPECT_EQ(first_action("mass").reason, ActionReason::kLeastAttention);
  EXPECT_GE(first_action("mass").forecast, 0.0f);
  EXPECT_EQ(first_action("window").reason, ActionReason::kOldest);
  EXPECT_TRUE(std::isnan(first_action("window").forecast));
  EXPECT_EQ(first_action("k8v4").reason, ActionReason::kFixedFormat);
}

TEST_F(Recorded, EveryHolderOfASharedBlockIsTold) {
  const KvPolicySettings k8v4{.policy = find_policy("k8v4")};
  constexpr std::int32_t kNumTokens = 12 * kTokensPerBlock;
  SequenceKv first = hold(k8v4, kNumTokens), second = hold(k8v4, kNumTokens);
  act({&first}, {&first});
  ASSERT_EQ(journal_.steps.size(), 1u);
  EXPECT_TRUE(journal_.steps[0].actions.empty());
  EXPECT_GT(journal_.steps[0].num_waiting, 0);
  act({&second}, {&first, &second});
  ASSERT_EQ(journal_.steps.size(), 3u);
  const StepRecord &planned = journal_.steps[1], &agreed = journal_.steps[2];
  EXPECT_EQ(planned.hold, second.hold);
  EXPECT_TRUE(planned.is_planned);
  EXPECT_EQ(agreed.hold, first.hold);
  EXPECT_FALSE(agreed.is_planned);
  EXPECT_EQ(agreed.num_computed_tokens, kNumTokens);
  ASSERT_EQ(planned.actions.size(), agreed.actions.size());
  for (std::size_t i = 0; i < planned.actions.size(); ++i) {
    EXPECT_TRUE(planned.actions[i].is_shared);
    EXPECT_EQ(planned.actions[i].block, agreed.actions[i].block);
    EXPECT_EQ(planned.actions[i].cell, agreed.actions[i].cell);
    EXPECT_EQ(planned.actions[i].to, KvFormat::kK8V4);
    EXPECT_EQ(agreed.actions[i].reason, ActionReason::kFixedFormat);
    EXPECT_EQ(format_of(first, planned.actions[i].cell, planned.actions[i].block), KvFormat::kK8V4);
  }
  manager_.free(first);
  manager_.free(second);
}

TEST_F(Recorded, AHoldBeginsWithItsFirstStepAndEndsWithItsScores) {
  SequenceKv idle = manager_.open("", false, 640, {.policy = &ladder_policy(), .budget_share = 0.3});
  manager_.free(idle);
  SequenceKv exact = manager_.open("", false, 640);
  grow(exact, 64);
  act({&exact});
  manager_.free(exact);
  EXPECT_TRUE(journal_.sequences.empty());
  EXPECT_TRUE(journal_.ends.empty());

  SequenceKv kv = manager_.open("", false, 640, {.policy = &ladder_policy(), .budget_share = 0.3});
  kv.holder = {.request_id = RequestId{9}, .choice = 2, .num_prompt_tokens = 64, .client_id = "abc"};
  grow(kv, 64);
  act({&kv});
  grow(kv, 128);
  act({&kv});
  const HoldId id = kv.hold;
  manager_.free(kv);
  ASSERT_EQ(journal_.sequences.size(), 1u);
  EXPECT_EQ(journal_.sequences[0].hold, id);
  EXPECT_EQ(journal_.sequences[0].holder.request_id, RequestId{9});
  EXPECT_EQ(journal_.sequences[0].holder.client_id, "abc");
  EXPECT_EQ(journal_.sequences[0].policy.policy, &ladder_policy());
  ASSERT_EQ(journal_.ends.size(), 1u);
  EXPECT_EQ(journal_.ends[0].hold, id);
  EXPECT_EQ(journal_.ends[0].num_computed_tokens, 128);
  ASSERT_EQ(journal_.ends[0].scores.size(), 1u);
  EXPECT_EQ(journal_.ends[0].scores[0].num_blocks(), 8);
}

}  // namespace
}  // namespace kvasir::kv::policy_recorder_test
