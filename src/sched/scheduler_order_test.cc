// Whose turn it is, and who goes when there is no room.
#include "sched/scheduler_fixture.h"

namespace kvasir::sched::scheduler_order_test {
namespace {

TEST_F(SchedulerTest, StartsByPriorityThenArrival) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 64}, {{.num_blocks = 8}});
  SequenceRequest late_but_urgent = make_request(2, prompt_of(4), 1);
  late_but_urgent.priority = -1;
  const SequenceId normal = add(make_request(1, prompt_of(4), 1));
  const SequenceId urgent = add(late_but_urgent);
  EXPECT_EQ(step()[0].id, urgent);
  EXPECT_EQ(step()[0].id, normal);
}

// By value: one seat, and a tenant that has urgent requests without end.
TEST_F(SchedulerTest, UrgentRequestsAreBeforeTheirTenantsOthersAndNobodyElses) {
  build({.max_num_seqs = 1,
         .max_num_batched_tokens = 64,
         .waiting = {.policy = WaitingPolicy::kSloValue, .tenant_quantum_tokens = 100.0}},
        {{.num_blocks = 8}});
  const auto add_of = [&](const char* tenant, std::int32_t priority) {
    return add_short(tenant, priority, 40);
  };
  const SequenceId first = add_of("urgent", 0);
  const SequenceId other = add_of("plain", 0);
  const SequenceId urgent = add_of("urgent", -1);
  const SequenceId most_urgent = add_of("urgent", -100);
  EXPECT_EQ(step()[0].id, most_urgent) << "in the place of its tenant's first";
  EXPECT_EQ(step()[0].id, other);
  EXPECT_EQ(step()[0].id, urgent);
  EXPECT_EQ(step()[0].id, first);
  const SequenceId late = add_of("plain", 0);
  const SequenceId last = add_of("urgent", 0);
  int num_before = 0;
  for (add_of("urgent", -1); step()[0].id != late; add_of("urgent", -1)) ASSERT_LT(++num_before, 4);
  EXPECT_EQ(scheduler_->sequences().at(last).status, SequenceStatus::kWaiting);
}

TEST_F(SchedulerTest, APlaceIsLentToOneUrgentRequestOnly) {
  build({.max_num_seqs = 1,
         .max_num_batched_tokens = 64,
         .waiting = {.policy = WaitingPolicy::kSloValue, .tenant_quantum_tokens = 1e6}},
        {{.num_blocks = 8}});
  const auto add_of = [&](const char* tenant, std::int32_t priority) {
    return add_short(tenant, priority, 4);
  };
  const SequenceId lender = add_of("a", 0), first = add_of("b", 0), second = add_of("b", 0);
  const SequenceId urgent = add_of("a", -1), more_urgent = add_of("a", -2), last = add_of("b", 0);
  for (const SequenceId next : {more_urgent, first, second, urgent, lender, last}) {
    EXPECT_EQ(step()[0].id, next);
  }
}

TEST_F(SchedulerTest, WhoLendsItsPlaceAgesAllTheSame) {
  build({.max_num_seqs = 1,
         .max_num_batched_tokens = 64,
         .waiting = {.policy = WaitingPolicy::kSloValue, .ageing_ms = 1000.0}},
        {{.num_blocks = 8}});
  const SequenceId plain = add_short("", 0, 4);
  for (add_short("", -1, 4); step(at_ms(now_ms_))[0].id != plain; add_short("", -1, 4)) {
    ASSERT_LE(now_ms_ += 100, 2000);
  }
  EXPECT_GE(now_ms_, 1000);
}

TEST_F(SchedulerTest, TenantsPreemptEachOthersByArrivalWhateverTheyCallUrgent) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64, .waiting = {.policy = WaitingPolicy::kSloValue}},
        {{.num_blocks = 2}}, false);
  const SequenceId first = add_short("plain", 0, 15, 10);
  add_short("urgent", -1, 15, 10);
  step();
  step();
  const auto ran = step();  // the 17th token of each needs a second block
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].id, first);
}

TEST_F(SchedulerTest, WhoWasPreemptedLendsItsPlaceToNobody) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 64, .waiting = {.policy = WaitingPolicy::kSloValue}},
        {{.num_blocks = 2}}, false);
  const SequenceId first = add_short("plain", 0, 15, 10);
  const SequenceId preempted = add_short("urgent", 0, 15, 10);
  for (int i = 0; i < 3; ++i) step();  // the 17th token of each needs a second block
  ASSERT_EQ(scheduler_->sequences().at(preempted).status, SequenceStatus::kWaiting);
  add_short("urgent", -1, 15, 10);
  while (scheduler_->sequences().contains(first)) step();
  const auto ran = step();  // it needs both blocks
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].id, preempted);
}

TEST_F(SchedulerTest, APromptThatHasBegunLendsItsTurnOnce) {
  build({.max_num_seqs = 4, .max_num_batched_tokens = 512, .waiting = {.policy = WaitingPolicy::kSloValue}},
        {{.num_blocks = 1000}}, false);
  add_short("urgent", 0, 600);
  timed_step();
  const SequenceId other = add_short("plain", 0, 100);
  while (scheduler_->sequences().contains(other)) {
    add_short("urgent", -1, 512);
    timed_step();
  }
  EXPECT_LE(now_ms_, 4 * 512);
}

// Who keeps a cheap stream all the time does not get ahead for later, nor do those who come meanwhile.
TEST_F(SchedulerTest, NobodyWaitsLongForWhatAnotherLeftUnused) {
  build({.max_num_seqs = 2,
         .max_num_batched_tokens = 512,
         .waiting = {.policy = WaitingPolicy::kSloValue, .tenant_quantum_tokens = 512}},
        {{.num_blocks = 1000}}, false);
  add_short("trickle", 0, 4, 10'000);
  for (int i = 0; i < 400; ++i) {
    add_short("busy", 0, 400);
    timed_step();
  }
  while (scheduler_->sequences().size() > 1) timed_step();
  const std::int64_t began_ms = now_ms_;
  const SequenceId busy = add_short("busy", 0, 400);
  while (scheduler_->sequences().contains(busy)) {
    add_short("new", 0, 400);
    timed_step();
  }
  EXPECT_LT(now_ms_ - began_ms, 2 * admission::FairShare::kCreditTokens);
}

// Who had the machine to itself is not last of many for long, whether they stay or ever new ones come.
TEST_F(SchedulerTest, NobodyWaitsForTheCreditOfManyTenants) {
  for (const bool are_new : {false, true}) {
    build({.max_num_seqs = 4,
           .max_num_batched_tokens = 512,
           .waiting = {.policy = WaitingPolicy::kSloValue, .ageing_ms = 0.0}},
          {{.num_blocks = 1000}}, false);
    for (int i = 0; i < 100; ++i) {
      add_short("busy", 0, 400);
      timed_step();
    }
    const std::int64_t began_ms = now_ms_;
    std::map<SequenceId, int> others;  // by which of twenty
    int num_names = 0;
    const auto add_other = [&](int which) {
      const std::string name = "other" + std::to_string(are_new ? num_names++ : which);
      others[add_short(name.c_str(), 0, 300)] = which;
    };
    for (int which = 0; which < 20; ++which) add_other(which);
    add_short("busy", 0, 400);
    const SequenceId second = add_short("busy", 0, 400);
    while (scheduler_->sequences().contains(second)) {
      timed_step();
      std::vector<int> ended;
      std::erase_if(others, [&](const auto& other) {
        if (scheduler_->sequences().contains(other.first)) return false;
        ended.push_back(other.second);
        return true;
      });
      for (const int which : ended) add_other(which);
      ASSERT_LT(now_ms_ - began_ms, 100'000);
    }
    EXPECT_LT(now_ms_ - began_ms, 50'000) << are_new;
  }
}

TEST_F(SchedulerTest, WhoIsPreemptedHasItsTurnAgain) {
  build({.max_num_seqs = 4, .max_num_batched_tokens = 32, .waiting = {.policy = WaitingPolicy::kSloValue}},
        {{.num_blocks = 8}}, false);
  add_short("plain", 0, 20, 100);
  const SequenceId lender = add_short("urgent", 0, 60, 60);
  timed_step();  // 20 and 12 tokens
  add_short("urgent", -1, 4);
  timed_step();
  ASSERT_TRUE(scheduler_->sequences().at(lender).has_yielded);
  while (scheduler_->sequences().at(lender).num_preemptions == 0) timed_step();
  EXPECT_FALSE(scheduler_->sequences().at(lender).has_yielded);
}

TEST_F(SchedulerTest, PreemptsTheLatestOfTheLowestPriorityAndKeepsItsTokens) {
  build({.max_num_seqs = 3, .max_num_batched_tokens = 64}, {{.num_blocks = 3}}, false);
  SequenceRequest unimportant = make_request(1, prompt_of(15), 10);
  unimportant.priority = 1;
  const SequenceId victim = add(std::move(unimportant));
  const SequenceId first = add(make_request(2, prompt_of(15, 100), 3));
  const SequenceId second = add(make_request(3, prompt_of(15, 200), 3));
  EXPECT_EQ(step().size(), 3u);  // each fills a block: 15 tokens and the next
  EXPECT_EQ(step().size(), 3u);
  const auto ran = step();  // the 17th token of each needs a second block
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].id, first);
  EXPECT_EQ(scheduler_->stats().num_preemptions, 2);
  const Sequence& preempted = scheduler_->sequences().at(victim);
  EXPECT_EQ(preempted.status, SequenceStatus::kWaiting);
  EXPECT_EQ(preempted.num_computed_tokens, 0);
  EXPECT_EQ(preempted.num_preemptions, 1);
  EXPECT_EQ(preempted.num_generated_tokens(), 2);
  const auto next = step();  // the first has ended: the more important of the two comes back
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].id, second);
  EXPECT_EQ(next[0].num_tokens, 17);
}

TEST_F(SchedulerTest, NobodyOvertakesASequenceThatDoesNotFitYet) {
  build({.max_num_seqs = 4, .max_num_batched_tokens = 64}, {{.num_blocks = 4}}, false);
  add(make_request(1, prompt_of(30), 3));
  step();
  const SequenceId large = add(make_request(2, prompt_of(60, 100), 1));
  const SequenceId small = add(make_request(3, prompt_of(4, 200), 1));
  EXPECT_EQ(step().size(), 1u);
  EXPECT_EQ(step().size(), 1u);
  EXPECT_EQ(step()[0].id, large);
  EXPECT_EQ(step()[0].id, small);
}

}  // namespace
}  // namespace kvasir::sched::scheduler_order_test
