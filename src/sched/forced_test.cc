// Forced tokens behind a sampled one: they are tokens at once, and computed with it as a chunk.
#include "sched/scheduled_work.h"
#include "sched/scheduler_fixture.h"

namespace kvasir::sched::forced_test {
namespace {

class ForcedTest : public SchedulerTest {
 protected:
  // A step after which the only sequence has `sampled` and the forced tokens.
  const SequenceUpdate& step_with(TokenId sampled, const std::vector<TokenId>& forced) {
    const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
    num_run_ = output.sequences.at(0).num_tokens;
    result_.clear();
    result_.tokens.push_back({.token = sampled});
    for (const TokenId token : forced) result_.tokens.push_back({.token = token});
    result_.num_tokens = {1};
    result_.num_forced = {static_cast<std::int32_t>(forced.size())};
    updates_ = scheduler_->update(result_, at_ms(0));
    return updates_[0];
  }
  const Sequence& sequence(SequenceId id) const { return scheduler_->sequences().at(id); }

  std::int32_t num_run_ = 0;  // of step_with()
};

TEST_F(ForcedTest, AreTokensAtOnceAndComputedInOneStep) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 32}, {{.num_blocks = 8}});
  const SequenceId id = add(make_request(1, prompt_of(20)));
  const SequenceUpdate& update = step_with(5, {6, 7, 8});
  EXPECT_EQ(num_run_, 20);
  EXPECT_EQ(update.tokens.size(), 4u);
  EXPECT_EQ(sequence(id).num_tokens(), 24);
  EXPECT_EQ(sequence(id).num_computed_tokens, 20);
  const auto ran = step();
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].num_tokens, 4);
  EXPECT_EQ(ran[0].num_logits_rows(), 1);
  EXPECT_TRUE(ran[0].samples);
  EXPECT_TRUE(sequence(id).is_decoding());
}

TEST_F(ForcedTest, EndWhereTheAnswerEnds) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 32}, {{.num_blocks = 8}});
  add(make_request(1, prompt_of(20), 3));
  const SequenceUpdate& cut = step_with(5, {6, 7, 8});
  EXPECT_EQ(cut.tokens.size(), 3u);
  EXPECT_EQ(cut.finish_reason, FinishReason::kLength);
  EXPECT_FALSE(scheduler_->has_unfinished());
  SequenceRequest request = make_request(2, prompt_of(20));
  request.stop.stop_token_ids = {5};
  add(std::move(request));
  const SequenceUpdate& stopped = step_with(5, {6, 7, 8});
  EXPECT_EQ(stopped.tokens.size(), 1u);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
}

TEST_F(ForcedTest, FullBlocksAreFoundByOthers) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 16}});
  const std::vector<TokenId> forced = prompt_of(20, 500);
  const SequenceId id = add(make_request(1, prompt_of(15)));
  step_with(499, forced);
  EXPECT_EQ(step().at(0).num_tokens, 21);
  const std::vector<TokenId> tokens = sequence(id).token_ids;
  EXPECT_EQ(sequence(id).num_computed_tokens, 36);
  EXPECT_TRUE(scheduler_->finish(id));
  const SequenceId other = add(make_request(2, tokens));
  step();
  EXPECT_EQ(sequence(other).num_cached_tokens, 32);
}

// Prompts take what streams leave, and streams have all of their runs.
TEST_F(ForcedTest, GoBeforePromptsWhateverTheStepMayTake) {
  build({.max_num_seqs = 3, .max_num_batched_tokens = 24, .max_step_ms = 1.0}, {{.num_blocks = 32}});
  add(make_request(1, prompt_of(16)));
  step_with(5, prompt_of(11, 600));
  add(make_request(2, prompt_of(100, 1000)));
  const auto ran = step();
  ASSERT_EQ(ran.size(), 2u);
  EXPECT_EQ(ran[0].num_tokens, 12);
  EXPECT_LE(ran[1].num_tokens, 12);
}

TEST_F(ForcedTest, SurviveAPreemption) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 4}}, /*prefix_cache=*/false);
  const SequenceId first = add(make_request(1, prompt_of(30), 30));
  step();
  const SequenceId second = add(make_request(2, prompt_of(14, 300), 30));
  const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
  ASSERT_EQ(output.sequences.size(), 2u);
  result_.clear();
  result_.tokens = {{.token = 5}, {.token = 6}, {.token = 7}, {.token = 8}};
  result_.num_tokens = {1, 1};
  result_.num_forced = {0, 2};
  updates_ = scheduler_->update(result_, at_ms(0));
  while (sequence(second).num_preemptions == 0 && scheduler_->sequences().contains(first)) step();
  EXPECT_EQ(sequence(second).num_preemptions, 1);
  EXPECT_EQ(sequence(second).token_ids[15], 7);
  while (scheduler_->sequences().contains(second)) step();
  EXPECT_EQ(updates_.back().finish_reason, FinishReason::kLength);
}

}  // namespace
}  // namespace kvasir::sched::forced_test
