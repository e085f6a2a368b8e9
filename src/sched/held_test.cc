// Sequences that wait for something outside the scheduler.
#include "sched/scheduler_fixture.h"

namespace kvasir::sched::held_test {
namespace {

class HeldTest : public SchedulerTest {
 protected:
  std::vector<SequenceId> ids_of_step() {
    std::vector<SequenceId> ids;
    for (const ScheduledSequence& s : step()) ids.push_back(s.id);
    return ids;
  }
};

TEST_F(HeldTest, AreOvertakenWhileTheyWait) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 64}, {{.num_blocks = 8}});
  const SequenceId held = add(make_request(1, prompt_of(4), 1));
  const SequenceId other = add(make_request(2, prompt_of(4), 1));
  scheduler_->hold(held);
  EXPECT_EQ(ids_of_step(), std::vector<SequenceId>{other});
  EXPECT_FALSE(scheduler_->has_runnable());
  EXPECT_TRUE(scheduler_->has_unfinished());
  EXPECT_TRUE(step().empty());
  scheduler_->release(held);
  EXPECT_EQ(ids_of_step(), std::vector<SequenceId>{held});
}

TEST_F(HeldTest, KeepTheirSeatAndTheirKvWhileTheyRun) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 8}});
  const SequenceId held = add(make_request(1, prompt_of(20), 10));
  const SequenceId other = add(make_request(2, prompt_of(20, 100), 10));
  step();
  scheduler_->hold(held);
  EXPECT_EQ(ids_of_step(), std::vector<SequenceId>{other});
  EXPECT_EQ(scheduler_->stats().num_running, 2);
  EXPECT_EQ(scheduler_->sequences().at(held).num_computed_tokens, 20);
  scheduler_->release(held);
  EXPECT_EQ(step().size(), 2u);
}

TEST_F(HeldTest, GoFirstWhenBlocksRunOut) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 4}});
  const SequenceId held = add(make_request(1, prompt_of(31), 20));
  step();
  const SequenceId other = add(make_request(2, prompt_of(31, 100), 20));
  step();
  scheduler_->hold(held);
  step();
  EXPECT_EQ(ids_of_step(), std::vector<SequenceId>{other});  // its third block
  EXPECT_EQ(scheduler_->sequences().at(held).num_preemptions, 1);
}

TEST_F(HeldTest, CountNoLongerWhenTheyEnd) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64}, {{.num_blocks = 4}});
  const SequenceId held = add(make_request(1, prompt_of(4), 1));
  scheduler_->hold(held);
  scheduler_->finish(held);
  const SequenceId other = add(make_request(2, prompt_of(4), 1));
  EXPECT_TRUE(scheduler_->has_runnable());
  EXPECT_EQ(ids_of_step(), std::vector<SequenceId>{other});
}

}  // namespace
}  // namespace kvasir::sched::held_test
