// Sequences that go on from another one's tokens.
#include "sched/scheduler_fixture.h"

namespace kvasir::sched::fork_test {
namespace {

constexpr TokenId kOther = 2000;

class ForkTest : public SchedulerTest {
 protected:
  const Sequence& at(SequenceId id) const { return scheduler_->sequences().at(id); }
  // Two choices of a request whose prompt has so many tokens; both have sampled a token.
  SequenceId add_two(std::int32_t num_prompt_tokens) {
    SequenceRequest request = make_request(1, prompt_of(num_prompt_tokens), 24);
    request.num_choices = 2;
    const SequenceId first = add(std::move(request));
    while (at(first).num_generated_tokens() == 0 || at(second_of(first)).num_generated_tokens() == 0) step();
    return first;
  }
  static SequenceId second_of(SequenceId first) { return SequenceId{static_cast<std::int64_t>(first) + 1}; }
};

TEST_F(ForkTest, SharesFullBlocksAndCopiesTheLastOne) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 16, .cells_per_block = 3}});
  const SequenceId from = add_two(40), to = second_of(from);
  const std::int32_t num_tokens = at(from).num_tokens();
  scheduler_->fork(from, to, kOther);
  EXPECT_EQ(at(to).num_tokens(), num_tokens);
  EXPECT_EQ(at(to).token_ids.back(), kOther);
  EXPECT_EQ(at(from).token_ids.back(), kSampled);
  EXPECT_EQ(at(to).num_computed_tokens, at(from).num_computed_tokens);
  const kv::BlockTable &theirs = at(from).kv.table(0), &own = at(to).kv.table(0);
  EXPECT_EQ(own[0], theirs[0]);
  EXPECT_EQ(own[1], theirs[1]);
  EXPECT_NE(own[2], theirs[2]);
  const SchedulerOutput& output = scheduler_->schedule(at_ms(1));
  ASSERT_EQ(output.conversions->all().size(), 3u);
  for (std::int32_t cell = 0; cell < 3; ++cell) {
    EXPECT_EQ(output.conversions->all()[static_cast<std::size_t>(cell)].from, kv_->cells().at(0, theirs[2], cell));
    EXPECT_EQ(output.conversions->all()[static_cast<std::size_t>(cell)].to, kv_->cells().at(0, own[2], cell));
  }
  ASSERT_EQ(output.sequences.size(), 2u);
  for (const ScheduledSequence& sequence : output.sequences) EXPECT_EQ(sequence.num_tokens, 1);
  result_ = answer(output);
  scheduler_->update(result_, at_ms(1));
}

// All computed tokens fill whole blocks: nothing is copied.
TEST_F(ForkTest, CopiesNothingAtABlocksEnd) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 16}});
  const SequenceId from = add_two(40), to = second_of(from);
  while (at(from).num_computed_tokens % kv::kTokensPerBlock != 0) step();
  scheduler_->fork(from, to, kOther);
  EXPECT_EQ(at(to).num_computed_tokens, at(from).num_computed_tokens);
  EXPECT_TRUE(kv_->cells().conversions().empty());
}

// The pool is full: the copy goes where the sequence's own last block was.
TEST_F(ForkTest, TakesTheRoomThatItGivesUp) {
  build({.max_num_seqs = 3, .max_num_batched_tokens = 64}, {{.num_blocks = 5}}, false);
  const SequenceId from = add_two(40), to = second_of(from);
  add(make_request(2, prompt_of(13, 500), 2));
  step();
  scheduler_->fork(from, to, kOther);
  EXPECT_EQ(at(to).num_computed_tokens, at(from).num_computed_tokens);
  EXPECT_EQ(at(to).kv.table(0).size(), 3);
}

TEST_F(ForkTest, WaitsWithItsNewTokens) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 64}, {{.num_blocks = 16}});
  SequenceRequest request = make_request(1, prompt_of(20));
  request.num_choices = 2;
  const SequenceId from = add(std::move(request)), to = second_of(from);
  step();
  step();
  scheduler_->fork(from, to, kOther);
  EXPECT_EQ(at(to).status, SequenceStatus::kWaiting);
  EXPECT_EQ(at(to).token_ids.back(), kOther);
  scheduler_->hold(from);
  scheduler_->yield(from);
  EXPECT_EQ(at(from).status, SequenceStatus::kWaiting);
  const std::vector<ScheduledSequence> ran = step();
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].id, to);
  EXPECT_EQ(at(to).num_computed_tokens + 1, at(to).num_tokens());
}

TEST_F(ForkTest, GoesOnFromASequenceThatLostItsKv) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 16}}, false);
  const SequenceId from = add_two(20), to = second_of(from);
  scheduler_->yield(from);
  scheduler_->fork(from, to, kOther);
  EXPECT_EQ(at(to).num_computed_tokens, 0);
  step();
  EXPECT_EQ(at(to).num_computed_tokens + 1, at(to).num_tokens());
}

TEST_F(ForkTest, AnotherNewestTokenIsTheOneThatRuns) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 16}});
  const SequenceId id = add_two(20);
  scheduler_->set_last_token(id, kOther);
  EXPECT_EQ(step()[0].committed_token_ids().back(), kOther);
}

}  // namespace
}  // namespace kvasir::sched::fork_test
