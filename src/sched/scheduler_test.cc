#include "sched/scheduler_fixture.h"

namespace kvasir::sched::scheduler_test {
namespace {

TEST_F(SchedulerTest, WhoHasBegunDoesNotExpireWhenItIsPreempted) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 2}}, false);
  add(make_request(1, prompt_of(15), 17));
  SequenceRequest request = make_request(2, prompt_of(15, 100), 10);
  request.start_deadline = at_ms(100);
  const SequenceId preempted = add(std::move(request));
  for (int i = 0; i < 3; ++i) step(at_ms(i));  // the 17th token of each needs a second block
  ASSERT_EQ(scheduler_->sequences().at(preempted).status, SequenceStatus::kWaiting);
  while (scheduler_->sequences().contains(preempted)) step(at_ms(200));
  EXPECT_EQ(scheduler_->stats().num_expired, 0);
}

TEST_F(SchedulerTest, TakesACachedPrefixAndReportsIt) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 64}, {{.num_blocks = 8}});
  add(make_request(1, prompt_of(40), 1));
  step();
  add(make_request(2, prompt_of(40), 1));
  const auto ran = step();
  EXPECT_EQ(ran[0].first_position, 32);
  EXPECT_EQ(updates_[0].num_cached_tokens, 32);
  EXPECT_EQ(scheduler_->stats().prefix_queries_tokens, 80);
  EXPECT_EQ(scheduler_->stats().prefix_hits_tokens, 32);
}

TEST_F(SchedulerTest, ComputesTheWholePromptForPromptLogits) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 30}, {{.num_blocks = 8}});
  add(make_request(1, prompt_of(40), 1));
  step();
  step();
  SequenceRequest request = make_request(2, prompt_of(40), 2);
  request.want_prompt_logits = true;
  add(std::move(request));
  auto ran = step();
  EXPECT_EQ(ran[0].first_position, 0);
  EXPECT_EQ(ran[0].num_logits_rows(), 30);
  ran = step();
  EXPECT_EQ(ran[0].num_logits_rows(), 10);
  ran = step();
  EXPECT_EQ(ran[0].num_logits_rows(), 1);
}

TEST_F(SchedulerTest, RequestForItsPromptOnlyEndsWithoutAToken) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 64}, {{.num_blocks = 8}});
  add(make_request(1, prompt_of(10), 0));
  const auto ran = step();
  EXPECT_FALSE(ran[0].samples);
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_TRUE(updates_[0].tokens.empty());
  EXPECT_EQ(updates_[0].finish_reason, FinishReason::kLength);
}

TEST_F(SchedulerTest, ChoicesShareThePromptAndRecomputeItsTail) {
  for (const bool prefix_cache : {true, false}) {
    build({.max_num_seqs = 4, .max_num_batched_tokens = 64}, {{.num_blocks = 16}}, prefix_cache);
    SequenceRequest request = make_request(1, prompt_of(40), 2);
    request.num_choices = 3;
    const SequenceId first = add(std::move(request));
    EXPECT_EQ(step().size(), 1u);  // the others wait for it
    const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
    ASSERT_EQ(output.sequences.size(), 3u);
    for (const ScheduledSequence& choice : output.sequences) {
      if (choice.id == first) continue;
      EXPECT_EQ(choice.first_position, 32);
      EXPECT_EQ(choice.num_tokens, 8);
      EXPECT_EQ(choice.block_tables[0][1], output.sequences[0].block_tables[0][1]);
      EXPECT_NE(choice.block_tables[0][2], output.sequences[0].block_tables[0][2]);
    }
    EXPECT_EQ(kv_->pool(0).num_blocks() - kv_->pool(0).num_free(), 2 + 3);
    result_ = answer(output);
    scheduler_->update(result_, at_ms(0));
  }
}

TEST_F(SchedulerTest, FinishesASequenceInEveryState) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 8}, {{.num_blocks = 8}});
  const SequenceId running = add(make_request(1, prompt_of(20)));
  const SequenceId waiting = add(make_request(2, prompt_of(20, 100)));
  step();  // in the middle of its prompt
  EXPECT_TRUE(scheduler_->finish(waiting));
  EXPECT_FALSE(scheduler_->finish(waiting));
  const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
  EXPECT_TRUE(scheduler_->finish(running));  // its step is in flight
  result_ = answer(output);
  EXPECT_TRUE(scheduler_->update(result_, at_ms(0)).empty());
  EXPECT_FALSE(scheduler_->finish(running));
  EXPECT_FALSE(scheduler_->has_unfinished());
}

TEST_F(SchedulerTest, DropsWhatDidNotStartByItsDeadline) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 8}, {{.num_blocks = 8}});
  SequenceRequest patient = make_request(1, prompt_of(4), 50);
  patient.start_deadline = at_ms(10);
  SequenceRequest impatient = make_request(2, prompt_of(4), 50);
  impatient.start_deadline = at_ms(10);
  impatient.num_choices = 2;
  add(std::move(patient));
  const SequenceId first = add(std::move(impatient));
  step(at_ms(5));
  const SchedulerOutput& output = scheduler_->schedule(at_ms(10));
  EXPECT_EQ(output.sequences.size(), 1u);  // what has started stays
  EXPECT_EQ(output.expired, (std::vector{first, SequenceId{static_cast<std::int64_t>(first) + 1}}));
  result_ = answer(output);
  scheduler_->update(result_, at_ms(10));
}

TEST_F(SchedulerTest, RecordsMilestones) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 8}, {{.num_blocks = 8}});
  add(make_request(1, prompt_of(12), 1));
  step(at_ms(3));
  step(at_ms(7));
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_EQ(updates_[0].times.arrived, at_ms(0));
  EXPECT_EQ(updates_[0].times.started, at_ms(3));
  EXPECT_EQ(updates_[0].times.prompt_computed, at_ms(7));
}

TEST_F(SchedulerTest, RefusesMalformedRequests) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 8}, {{.num_blocks = 2}});
  EXPECT_EQ(scheduler_->add(make_request(1, {}), at_ms(0)).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(scheduler_->add(make_request(1, prompt_of(4), -1), at_ms(0)).error().message,
            "max_tokens must be at least 0, got -1");
  EXPECT_EQ(scheduler_->add(make_request(1, prompt_of(33), 1), at_ms(0)).error().kind, ErrorKind::kUnmet);
  EXPECT_FALSE(scheduler_->has_unfinished());
}

TEST(SchedulerConfig, NamesTheFieldAtFault) {
  EXPECT_TRUE(SchedulerConfig{}.validate().has_value());
  EXPECT_EQ(SchedulerConfig{.max_num_seqs = 0}.validate().error().param, "max_num_seqs");
  const SchedulerConfig too_few_tokens{.max_num_seqs = 8, .max_num_batched_tokens = 4};
  EXPECT_EQ(too_few_tokens.validate().error().message,
            "max_num_batched_tokens must be at least max_num_seqs (8), got 4");
  EXPECT_EQ(SchedulerConfig{.max_chunk_tokens = -1}.validate().error().param, "max_chunk_tokens");
}

}  // namespace
}  // namespace kvasir::sched::scheduler_test
