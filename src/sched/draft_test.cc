// Guesses behind a sequence's tokens: when they run, when they count, and that they leave nothing.
#include "sched/scheduled_work.h"
#include "sched/scheduler_fixture.h"

namespace kvasir::sched::draft_test {
namespace {

class DraftTest : public SchedulerTest {
 protected:
  // A sequence that generates, with `num_prompt_tokens` and one more.
  SequenceId stream(std::int32_t num_prompt_tokens, std::int32_t max_tokens = 30, std::uint64_t number = 1) {
    const SequenceId id = add(make_request(
        number, prompt_of(num_prompt_tokens, static_cast<TokenId>(10'000 * number)), max_tokens));
    step();
    return id;
  }
  // A step whose model says these tokens for the only sequence.
  const SequenceUpdate& step_with(const std::vector<TokenId>& tokens) {
    const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
    num_drafts_ = output.sequences.at(0).num_draft_tokens();
    result_.clear();
    for (const TokenId token : tokens) result_.tokens.push_back({.token = token});
    result_.num_tokens.push_back(static_cast<std::int32_t>(tokens.size()));
    updates_ = scheduler_->update(result_, at_ms(0));
    return updates_[0];
  }
  const Sequence& sequence(SequenceId id) const { return scheduler_->sequences().at(id); }

  std::int32_t num_drafts_ = 0;  // of step_with()
};

TEST_F(DraftTest, RunBehindTheNewestTokenAndAreNeverAmongTheTokens) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 32}, {{.num_blocks = 8}});
  const SequenceId id = stream(20);
  scheduler_->set_draft(id, std::vector<TokenId>{7, 8, 9});
  const auto ran = step();
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].num_tokens, 4);
  EXPECT_EQ(ran[0].num_committed_tokens(), 1);
  EXPECT_TRUE(ran[0].is_decoding());
  EXPECT_EQ(ran[0].num_logits_rows(), 4);
  EXPECT_EQ(sequence(id).num_tokens(), 22);  // the model said something else
  EXPECT_EQ(sequence(id).num_computed_tokens, 21);
  EXPECT_EQ(step()[0].num_tokens, 1);  // each draft is for one step
}

TEST_F(DraftTest, CountAsFarAsTheyWereSampled) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 32}, {{.num_blocks = 8}});
  const SequenceId id = stream(30);
  scheduler_->set_draft(id, std::vector<TokenId>{7, 8, 9});
  const SequenceUpdate& update = step_with({7, 8, 55});
  EXPECT_EQ(update.tokens.size(), 3u);
  EXPECT_EQ(sequence(id).num_tokens(), 34);
  EXPECT_EQ(sequence(id).num_computed_tokens, 33);  // 55 is not
  EXPECT_TRUE(sequence(id).is_decoding());
}

TEST_F(DraftTest, WhatFollowsAStopDoesNotExist) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 32}, {{.num_blocks = 8}});
  SequenceRequest request = make_request(1, prompt_of(20));
  request.stop.stop_token_ids = {8};
  const SequenceId id = add(std::move(request));
  step();
  scheduler_->set_draft(id, std::vector<TokenId>{7, 8, 9});
  const SequenceUpdate& update = step_with({7, 8, 9, 10});
  EXPECT_EQ(update.tokens.size(), 2u);
  EXPECT_EQ(update.finish_reason, FinishReason::kStop);
  EXPECT_FALSE(scheduler_->has_unfinished());
}

TEST_F(DraftTest, AreCutToTheAnswersLength) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 32}, {{.num_blocks = 8}});
  const SequenceId id = stream(20, 3);  // one is there
  scheduler_->set_draft(id, std::vector<TokenId>{7, 8, 9});
  EXPECT_EQ(step_with({7, 8}).finish_reason, FinishReason::kLength);
  EXPECT_EQ(num_drafts_, 1);
}

TEST_F(DraftTest, DelayNoPrompt) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 16}, {{.num_blocks = 16}});
  const SequenceId id = stream(4);
  add(make_request(2, prompt_of(12, 500)));
  scheduler_->set_draft(id, std::vector<TokenId>(20, 7));
  const auto ran = step();
  ASSERT_EQ(ran.size(), 2u);
  EXPECT_EQ(ran[0].num_draft_tokens(), 0);
  EXPECT_EQ(ran[1].num_tokens, 12);
  scheduler_->set_draft(id, std::vector<TokenId>(20, 7));
  EXPECT_EQ(step()[0].num_draft_tokens(), 14);  // what two streams leave
}

TEST_F(DraftTest, EvictNothingAndGiveBackTheBlocksOfWhatWasRejected) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 4}});
  const SequenceId cached = stream(33, 20, 2);  // two full blocks stay when it has gone
  scheduler_->finish(cached);
  const SequenceId id = stream(15);
  ASSERT_EQ(kv_->pool(0).num_cached_free(), 2);
  scheduler_->set_draft(id, std::vector<TokenId>(40, 7));
  const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
  EXPECT_EQ(output.sequences[0].num_draft_tokens(), 16);  // of positions 16 to 31
  EXPECT_EQ(kv_->pool(0).num_cached_free(), 2);
  EXPECT_EQ(sequence(id).kv.table(0).size(), 2);
  result_ = answer(output);
  scheduler_->update(result_, at_ms(0));
  EXPECT_EQ(sequence(id).kv.table(0).size(), 1);
}

TEST_F(DraftTest, AreForgottenByWhoIsPreempted) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 4}});
  const SequenceId first = stream(31, 20, 1);
  const SequenceId second = stream(31, 20, 2);
  for (const SequenceId id : {first, second}) scheduler_->set_draft(id, std::vector<TokenId>{7});
  const auto ran = step();  // both need a third block
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(sequence(second).num_preemptions, 1);
  EXPECT_TRUE(sequence(second).draft_token_ids.empty());
  scheduler_->set_draft(second, std::vector<TokenId>{7});
  EXPECT_TRUE(sequence(second).draft_token_ids.empty());  // it waits
}

TEST_F(DraftTest, AreWorkOfTheirOwnKind) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 32}, {{.num_blocks = 8}});
  const SequenceId id = stream(20);
  scheduler_->set_draft(id, std::vector<TokenId>{7, 8, 9});
  const StepWork work = work_of(step());
  EXPECT_EQ(work.num_decoding, 1);
  EXPECT_EQ(work.num_draft_tokens, 3);
  EXPECT_EQ(work.num_chunk_tokens, 0);
  EXPECT_EQ(work.num_attended_tokens, 21 + 22 + 23 + 24);
}

}  // namespace
}  // namespace kvasir::sched::draft_test
