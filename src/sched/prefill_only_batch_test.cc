#include "sched/prefill_only_batch.h"

#include <gtest/gtest.h>

#include <optional>
#include <tuple>
#include <vector>

#include "kv/policy/registry.h"
#include "sched/scheduler.h"
#include "sched/start_conditions.h"

namespace kvasir::sched::prefill_only_batch_test {
namespace {

constexpr std::int32_t kNumLayers = 3;
constexpr TokenId kSampled = 1000;

TimePoint at_ms(std::int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); }

// One part of a pass: the layers, and the positions of a sequence.
using Part = std::tuple<std::int32_t, std::int32_t, SequenceId, std::int32_t, std::int32_t>;

class PrefillOnlyTest : public testing::Test {
 protected:
  void build(std::int32_t max_chunk_tokens, std::int32_t num_blocks = 32, std::int32_t max_tokens = 1024) {
    kv_.emplace(kv::KvCacheConfig{.groups = {{.num_blocks = num_blocks, .cells_per_block = kNumLayers}}});
    scheduler_.emplace(SchedulerConfig{.max_num_seqs = 8,
                                       .max_num_batched_tokens = max_chunk_tokens,
                                       .prefill_only = {.max_tokens = max_tokens, .num_layers = kNumLayers}},
                       *kv_);
  }
  static SequenceRequest request(std::int32_t num_tokens, std::int32_t max_tokens) {
    SequenceRequest request;
    request.request_id = RequestId{next_request_id_++};
    request.prompt_token_ids.assign(static_cast<std::size_t>(num_tokens), 7);
    request.use_prefix_cache = false;
    request.want_prompt_logits = max_tokens == 0;
    request.stop.max_tokens = max_tokens;
    return request;
  }
  SequenceId add(const SequenceRequest& request) { return scheduler_->add(request, at_ms(0)).value(); }
  SequenceId score(std::int32_t num_tokens) { return add(request(num_tokens, 0)); }

  // One whole step: what ran layer by layer.
  std::vector<Part> step(std::optional<SequenceId> leaves_meanwhile = {}) {
    const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
    whole_.assign(output.sequences.begin(),
                  output.sequences.begin() + static_cast<std::ptrdiff_t>(output.num_whole));
    std::vector<Part> parts;
    result_.clear();
    std::int32_t row = output.layer_pass.first_hidden_row;
    for (std::size_t i = 0; i < output.sequences.size(); ++i) {
      const ScheduledSequence& s = output.sequences[i];
      result_.add(s.samples ? kSampled : kNoToken);
      if (i < output.num_whole) continue;
      const Sequence& sequence = scheduler_->sequences().at(s.id);
      EXPECT_EQ(sequence.first_hidden_row + s.first_position, row);  // behind each other
      row += s.num_tokens;
      EXPECT_GE(s.block_tables.front().size() * kv::kTokensPerBlock, sequence.num_tokens());
      const bool is_last = output.layer_pass.end_layer == kNumLayers;
      EXPECT_EQ(s.num_logits_rows(), is_last && sequence.want_prompt_logits ? s.num_tokens : 0);
      parts.emplace_back(output.layer_pass.first_layer, output.layer_pass.end_layer, s.id, s.first_position,
                         s.num_tokens);
    }
    if (leaves_meanwhile) scheduler_->finish(*leaves_meanwhile);
    updates_ = scheduler_->update(result_, at_ms(0));
    return parts;
  }
  void TearDown() override {
    std::vector<SequenceId> left;
    for (const auto& [id, sequence] : scheduler_->sequences()) left.push_back(id);
    for (const SequenceId id : left) EXPECT_TRUE(scheduler_->finish(id));
    EXPECT_EQ(kv_->pool(0).num_free(), kv_->pool(0).num_blocks());
    EXPECT_EQ(kv_->held_bytes(), 0);
  }

  static inline std::uint64_t next_request_id_ = 1;
  std::optional<kv::KvCacheManager> kv_;
  std::optional<Scheduler> scheduler_;
  std::vector<ScheduledSequence> whole_;
  ModelStepResult result_;
  std::span<const SequenceUpdate> updates_;
};

TEST_F(PrefillOnlyTest, RunsALayerOverAllTokensBeforeTheNext) {
  build(16);
  const SequenceId id = score(40);
  for (std::int32_t layer = 0; layer < kNumLayers; ++layer) {
    EXPECT_EQ(step(), (std::vector<Part>{{layer, layer + 1, id, 0, 16}}));
    EXPECT_EQ(kv_->pool(0).num_blocks() - kv_->pool(0).num_free(),
              1);  // a block's three layers hold the 40 tokens of one
    EXPECT_EQ(step(), (std::vector<Part>{{layer, layer + 1, id, 16, 16}}));
    EXPECT_TRUE(updates_.empty());
    EXPECT_EQ(step(), (std::vector<Part>{{layer, layer + 1, id, 32, 8}}));
  }
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_TRUE(updates_[0].tokens.empty());
  EXPECT_EQ(updates_[0].finish_reason, FinishReason::kLength);
  EXPECT_TRUE(updates_[0].times.prompt_computed.has_value());
  EXPECT_FALSE(scheduler_->has_unfinished());
  EXPECT_EQ(scheduler_->stats().num_hidden_rows_peak, 40);
}

TEST_F(PrefillOnlyTest, ShortPromptsShareAPass) {
  build(16);
  const SequenceId a = score(6), b = score(10), c = score(1);
  for (std::int32_t layer = 0; layer < kNumLayers; ++layer) {
    EXPECT_EQ(step(), (std::vector<Part>{{layer, layer + 1, a, 0, 6}, {layer, layer + 1, b, 0, 10}}));
  }
  EXPECT_EQ(updates_.size(), 2u);
  EXPECT_EQ(step(), (std::vector<Part>{{0, kNumLayers, c, 0, 1}}));
}

TEST_F(PrefillOnlyTest, FewTokensTakeSeveralLayersAStep) {
  build(16);
  const SequenceId id = score(8);
  EXPECT_EQ(step(), (std::vector<Part>{{0, 2, id, 0, 8}}));
  EXPECT_EQ(step(), (std::vector<Part>{{2, 3, id, 0, 8}}));
  EXPECT_EQ(updates_.size(), 1u);
}

TEST_F(PrefillOnlyTest, PassesThatGiveLogitsAreShort) {
  build(256);
  const SequenceId longer = score(80);
  EXPECT_EQ(step(), (std::vector<Part>{{0, 2, longer, 0, 80}}));
  EXPECT_EQ(step(), (std::vector<Part>{{2, 3, longer, 0, 64}}));
  EXPECT_EQ(step(), (std::vector<Part>{{2, 3, longer, 64, 16}}));
  const SequenceId shorter = score(64);
  EXPECT_EQ(step(), (std::vector<Part>{{0, 3, shorter, 0, 64}}));
  SequenceRequest without_logits = request(80, 0);
  without_logits.want_prompt_logits = false;
  const SequenceId silent = add(without_logits);
  EXPECT_EQ(step(), (std::vector<Part>{{0, 3, silent, 0, 80}}));
}

TEST_F(PrefillOnlyTest, ALongPromptIsNotJoinedAndTheNextOneFollows) {
  build(16);
  const SequenceId longer = score(17), shorter = score(4);
  for (int i = 0; i < 2 * kNumLayers; ++i) {
    for (const Part& part : step()) EXPECT_EQ(std::get<2>(part), longer);
  }
  EXPECT_EQ(step(), (std::vector<Part>{{0, 3, shorter, 0, 4}}));
}

TEST_F(PrefillOnlyTest, OthersDecodeBesideEveryPass) {
  build(16);
  const SequenceId decodes = add(request(1, 100));
  step();
  score(40);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(step().size(), 1u);
    ASSERT_EQ(whole_.size(), 1u);
    EXPECT_EQ(whole_[0].id, decodes);
    EXPECT_EQ(updates_.size(), i == 8 ? 2u : 1u);
  }
}

// A chunk that runs all layers costs as much as one pass per layer, and so it is paid for.
TEST_F(PrefillOnlyTest, PromptsThatRunAllLayersTakeTurnsWithPasses) {
  build(16);
  score(160);
  step();
  add(request(40, 1));
  std::vector<std::size_t> num_whole;
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(step().size(), 1u);
    num_whole.push_back(whole_.size());
  }
  EXPECT_EQ(num_whole, (std::vector<std::size_t>{1, 0, 0, 1, 0, 0, 1}));
}

TEST_F(PrefillOnlyTest, APassThatGivesLogitsPaysForAllLayers) {
  build(16);
  score(160);
  for (int i = 0; i < 20; ++i) step();  // the layers before the last
  add(request(40, 1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(step().size(), 1u);
    EXPECT_EQ(whole_.size(), 1u);
  }
}

TEST_F(PrefillOnlyTest, WithoutABatchPromptsRunEveryStep) {
  build(16);
  const SequenceId id = score(160);
  add(request(64, 1));
  step();
  scheduler_->finish(id);
  for (int i = 0; i < 3; ++i) {
    step();
    EXPECT_EQ(whole_.size(), 1u);
  }
}

TEST_F(PrefillOnlyTest, TheOthersGoOnWhenOneLeaves) {
  build(16);
  const SequenceId a = score(4), b = score(4), c = score(4);
  step(b);  // all three ran layer 0, and b failed
  EXPECT_EQ(step(), (std::vector<Part>{{1, 2, a, 0, 4}}));
  EXPECT_EQ(step(), (std::vector<Part>{{1, 2, c, 0, 4}}));
  EXPECT_EQ(step(), (std::vector<Part>{{2, 3, a, 0, 4}}));
  EXPECT_EQ(updates_.size(), 1u);
  EXPECT_EQ(step(), (std::vector<Part>{{2, 3, c, 0, 4}}));
  EXPECT_FALSE(scheduler_->has_unfinished());
}

TEST_F(PrefillOnlyTest, TheLayerEndsWithWhoeverLeavesLast) {
  build(16);
  const SequenceId a = score(4), b = score(4), c = score(4);
  step(b);
  step();
  scheduler_->finish(c);  // that still had layer 1 to run
  EXPECT_EQ(step(), (std::vector<Part>{{2, 3, a, 0, 4}}));
  EXPECT_FALSE(scheduler_->has_unfinished());
}

TEST_F(PrefillOnlyTest, ANewBatchBeginsWithLayer0AfterOneWasGivenUp) {
  build(16);
  const SequenceId first = score(40);
  for (int i = 0; i < 4; ++i) step();
  scheduler_->finish(first);
  const SequenceId second = score(20);
  EXPECT_EQ(step(), (std::vector<Part>{{0, 1, second, 0, 16}}));
}

TEST_F(PrefillOnlyTest, WaitsForRoomAndNobodyBehindItOvertakes) {
  build(72, 5);
  const SequenceId holds = add(request(64, 1));  // four blocks
  const SequenceId waits = score(60);            // for two
  const SequenceId fits = add(request(8, 1));
  EXPECT_TRUE(step().empty());
  ASSERT_EQ(whole_.size(), 1u);
  EXPECT_EQ(whole_[0].id, holds);
  EXPECT_EQ(step(), (std::vector<Part>{{0, 1, waits, 0, 60}}));
  ASSERT_EQ(whole_.size(), 1u);
  EXPECT_EQ(whole_[0].id, fits);
}

TEST_F(PrefillOnlyTest, AMemberThatAwaitsABatchExpires) {
  build(16);
  score(40);
  SequenceRequest impatient = request(40, 0);
  impatient.start_deadline = at_ms(5);
  const SequenceId id = add(impatient);
  step();
  const SchedulerOutput& output = scheduler_->schedule(at_ms(6));
  EXPECT_EQ(output.expired, std::vector<SequenceId>{id});
  result_.clear();
  result_.add(kNoToken);
  scheduler_->update(result_, at_ms(6));
}

TEST_F(PrefillOnlyTest, IsOnlyWhatWantsItsPromptAndLeavesNothing) {
  build(16, 32, 100);
  kv::KvCacheManager without_cache({.groups = {{.num_blocks = 32}}, .prefix_cache = false});
  const auto may_be = [&](const SequenceRequest& request) { return may_be_prefill_only(request, *kv_, 100); };
  EXPECT_TRUE(may_be(request(100, 0)));
  EXPECT_FALSE(may_be(request(101, 0)));
  EXPECT_FALSE(may_be(request(100, 1)));
  EXPECT_FALSE(may_be_prefill_only(request(100, 0), *kv_, 0));
  SequenceRequest cached = request(100, 0);
  cached.use_prefix_cache = true;
  EXPECT_FALSE(may_be(cached));
  EXPECT_TRUE(may_be_prefill_only(cached, without_cache, 100));
  SequenceRequest twice = request(100, 0);
  twice.num_choices = 2;
  EXPECT_FALSE(may_be(twice));
  SequenceRequest lossy = request(100, 0);
  lossy.kv_policy = {.policy = kv::find_policy("ladder"), .budget_share = 0.5};
  EXPECT_FALSE(may_be(lossy));
}

}  // namespace
}  // namespace kvasir::sched::prefill_only_batch_test
