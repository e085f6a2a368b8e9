#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace kvasir::sched {
namespace {

TimePoint at_ms(std::int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); }

std::vector<TokenId> prompt_of(std::int32_t count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

SequenceRequest make_request(std::uint64_t id, std::vector<TokenId> prompt, std::int32_t max_tokens = 100) {
  SequenceRequest request;
  request.request_id = RequestId{id};
  request.prompt_token_ids = std::move(prompt);
  request.stop.max_tokens = max_tokens;
  return request;
}

// A scheduler whose model always says token 1000.
class SchedulerTest : public testing::Test {
 protected:
  static constexpr TokenId kSampled = 1000;

  void build(SchedulerConfig config, std::vector<kv::LayerGroup> groups, bool prefix_cache = true) {
    kv_.emplace(kv::KvCacheConfig{.groups = std::move(groups), .prefix_cache = prefix_cache});
    scheduler_.emplace(config, *kv_);
  }
  SequenceId add(SequenceRequest request) { return scheduler_->add(std::move(request), at_ms(0)).value(); }
  // A request with a prompt of its own, at now_ms_; for one token unless said otherwise.
  SequenceId add_short(const char* tenant, std::int32_t priority, std::int32_t num_prompt_tokens,
                       std::int32_t max_tokens = 1) {
    const std::uint64_t id = num_short_++;
    SequenceRequest request =
        make_request(id, prompt_of(num_prompt_tokens, static_cast<TokenId>(100 * id)), max_tokens);
    request.tenant = tenant;
    request.priority = priority;
    return scheduler_->add(std::move(request), at_ms(now_ms_)).value();
  }
  // One whole step; what it ran.
  std::vector<ScheduledSequence> step(TimePoint now = at_ms(0)) {
    const SchedulerOutput& output = scheduler_->schedule(now);
    const std::vector<ScheduledSequence> ran = output.sequences;
    updates_ = scheduler_->update(answer(output), now);
    return ran;
  }
  // One step that takes a millisecond a token; how many it ran.
  std::int32_t timed_step() {
    const SchedulerOutput& output = scheduler_->schedule(at_ms(now_ms_));
    std::int32_t num_tokens = 0;
    for (const ScheduledSequence& s : output.sequences) num_tokens += s.num_tokens;
    now_ms_ += num_tokens;
    updates_ = scheduler_->update(answer(output), at_ms(now_ms_));
    return num_tokens;
  }
  static ModelStepResult answer(const SchedulerOutput& output) {
    ModelStepResult result;
    for (const ScheduledSequence& s : output.sequences)
      result.next_tokens.push_back(s.samples ? kSampled : kNoToken);
    return result;
  }
  void TearDown() override {
    std::vector<SequenceId> left;
    for (const auto& [id, sequence] : scheduler_->sequences()) left.push_back(id);
    for (const SequenceId id : left) EXPECT_TRUE(scheduler_->finish(id));
    for (std::int32_t g = 0; g < kv_->num_groups(); ++g)
      EXPECT_EQ(kv_->pool(g).num_free(), kv_->pool(g).num_blocks());
  }

  std::optional<kv::KvCacheManager> kv_;
  std::optional<Scheduler> scheduler_;
  std::span<const SequenceUpdate> updates_;
  std::int64_t now_ms_ = 0;  // of timed_step() and add_short()
  std::uint64_t num_short_ = 0;
};

TEST_F(SchedulerTest, ComputesAPromptInChunksAndThenOneTokenAStep) {
  build({.max_num_seqs = 2, .max_num_batched_tokens = 16}, {{.num_blocks = 8}});
  add(make_request(1, prompt_of(20), 2));
  auto ran = step();
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].first_position, 0);
  EXPECT_EQ(ran[0].num_tokens, 16);
  EXPECT_FALSE(ran[0].samples);
  EXPECT_EQ(ran[0].num_logits_rows(), 0);
  EXPECT_TRUE(updates_.empty());
  ran = step();
  EXPECT_EQ(ran[0].first_position, 16);
  EXPECT_EQ(ran[0].num_tokens, 4);
  EXPECT_TRUE(ran[0].samples);
  EXPECT_EQ(ran[0].first_logits_row, 3);
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_EQ(updates_[0].token, kSampled);
  EXPECT_FALSE(updates_[0].finish_reason.has_value());
  ran = step();
  EXPECT_EQ(ran[0].first_position, 20);
  EXPECT_EQ(ran[0].num_tokens, 1);
  EXPECT_EQ(updates_[0].finish_reason, FinishReason::kLength);
  EXPECT_FALSE(scheduler_->has_unfinished());
  EXPECT_TRUE(step().empty());
}

TEST_F(SchedulerTest, DecodesFirstAndFillsTheRestWithAChunk) {
  build({.max_num_seqs = 4, .max_num_batched_tokens = 8}, {{.num_blocks = 16}});
  add(make_request(1, prompt_of(4)));
  add(make_request(2, prompt_of(4, 100)));
  step();
  add(make_request(3, prompt_of(30, 200)));
  const auto ran = step();
  ASSERT_EQ(ran.size(), 3u);
  EXPECT_EQ(ran[0].num_tokens, 1);
  EXPECT_EQ(ran[1].num_tokens, 1);
  EXPECT_EQ(ran[2].num_tokens, 6);
}

// A millisecond a token: what a prompt gets beside a stream is what fits, once the scheduler has seen steps.
TEST_F(SchedulerTest, LetsNoStreamWaitLongerThanItMayForPrompts) {
  build({.max_num_seqs = 4, .max_num_batched_tokens = 256, .max_step_ms = 50.0}, {{.num_blocks = 64}});
  add(make_request(1, prompt_of(200)));
  EXPECT_EQ(timed_step(), 200);  // nobody decodes
  for (int i = 0; i < 20; ++i) EXPECT_EQ(timed_step(), 1);
  add(make_request(2, prompt_of(300, 1000)));
  for (int left = 300; left > 0; left -= 47) EXPECT_EQ(timed_step(), 1 + std::min(left, 47));  // 48 rows
  EXPECT_EQ(timed_step(), 2);
}

// Half of the limit for who has had its share, 1.2 times of it for who is owed a turn.
TEST_F(SchedulerTest, StepsAreShorterBesideOtherTenantsAndLongerForOneThatIsOwedATurn) {
  build({.max_num_seqs = 16,
         .max_num_batched_tokens = 256,
         .max_step_ms = 75.0,
         .waiting = {.policy = WaitingPolicy::kSloValue, .tenant_quantum_tokens = 400.0}},
        {{.num_blocks = 400}});
  const auto add_of = [&](std::string tenant, std::uint64_t id, std::vector<TokenId> prompt) {
    SequenceRequest request = make_request(id, std::move(prompt), 1000);
    request.tenant = std::move(tenant);
    add(std::move(request));
  };
  add_of("greedy", 1, prompt_of(200));
  timed_step();
  for (int i = 0; i < 600; ++i) timed_step();  // 200 + 2 * 600 tokens
  add_of("greedy", 2, prompt_of(100, 1000));
  EXPECT_EQ(timed_step(), 64);  // alone: the limit of 75 ms in whole tiles
  EXPECT_EQ(timed_step(), 1 + 37);
  add_of("modest", 3, prompt_of(230, 2000));
  EXPECT_EQ(timed_step(), 80);  // 78 of the prompt: all of it would take more than 150 ms beside the streams
  EXPECT_EQ(timed_step(), 80);  // nor the rest of it
  EXPECT_EQ(timed_step(), 2 + 74);
  for (const std::uint64_t id : {4, 5, 6}) {
    add_of("modest", id, prompt_of(140, static_cast<TokenId>(1000 * id)));
    const auto num_streams = static_cast<std::int32_t>(id) - 1;
    EXPECT_EQ(timed_step(), num_streams - 2 + 140) << "in 150 ms with the greedy one's, which come after";
    EXPECT_EQ(timed_step(), num_streams + 1);
  }
  add_of("modest", 7, prompt_of(110, 7000));
  EXPECT_EQ(timed_step(), 80) << "not again so soon";
  EXPECT_EQ(timed_step(), 6 + 36);
  add_of("greedy", 8, prompt_of(100, 8000));
  EXPECT_EQ(timed_step(), 32);
}

// Nor for a long step of it, where nobody decodes.
TEST_F(SchedulerTest, AShortPromptDoesNotWaitForAllOfALongOne) {
  build({.max_num_seqs = 4,
         .max_num_batched_tokens = 1024,
         .max_step_ms = 75.0,
         .waiting = {.policy = WaitingPolicy::kSloValue},
         .ttft_target_ms = 1000.0},
        {{.num_blocks = 400}});
  for (std::uint64_t id = 1; id <= 20; ++id) {
    add(make_request(id, prompt_of(static_cast<std::int32_t>(20 * id), static_cast<TokenId>(1000 * id)), 1));
    timed_step();
  }
  add(make_request(30, prompt_of(4000, 50'000), 1));
  EXPECT_LE(timed_step(), 128) << "an eighth of the target";
  const SequenceId quick = add(make_request(31, prompt_of(10, 90'000), 1));
  const std::int64_t came_ms = now_ms_;
  const auto is_there = [&] { return scheduler_->sequences().contains(quick); };
  for (int i = 0; i < 40 && is_there(); ++i) timed_step();
  EXPECT_LT(now_ms_ - came_ms, 700);
}

TEST_F(SchedulerTest, AnOwedPromptKeepsToItsTimeWhereLessIsCachedThanWasThought) {
  build({.max_num_seqs = 16,
         .max_num_batched_tokens = 512,
         .max_step_ms = 75.0,
         .waiting = {.policy = WaitingPolicy::kSloValue, .tenant_quantum_tokens = 400.0}},
        {{.num_blocks = 400}});
  add_short("greedy", 0, 200, 1000);
  for (int i = 0; i < 600; ++i) timed_step();
  SequenceRequest modest = make_request(2, prompt_of(480, 2000), 1000);
  modest.tenant = "modest";
  modest.expected_cached_tokens = 350;
  add(std::move(modest));
  for (int i = 0; i < 4; ++i) EXPECT_LE(timed_step(), 150);
}

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
  EXPECT_LT(now_ms_ - began_ms, 2 * TenantLedger::kCreditTokens);
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
  ASSERT_TRUE(scheduler_->sequences().at(lender).has_lent_turn);
  while (scheduler_->sequences().at(lender).num_preemptions == 0) timed_step();
  EXPECT_FALSE(scheduler_->sequences().at(lender).has_lent_turn);
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
  EXPECT_EQ(updates_[0].token, kNoToken);
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
    scheduler_->update(answer(output), at_ms(0));
  }
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

TEST_F(SchedulerTest, FinishesASequenceInEveryState) {
  build({.max_num_seqs = 1, .max_num_batched_tokens = 8}, {{.num_blocks = 8}});
  const SequenceId running = add(make_request(1, prompt_of(20)));
  const SequenceId waiting = add(make_request(2, prompt_of(20, 100)));
  step();  // in the middle of its prompt
  EXPECT_TRUE(scheduler_->finish(waiting));
  EXPECT_FALSE(scheduler_->finish(waiting));
  const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
  EXPECT_TRUE(scheduler_->finish(running));  // its step is in flight
  EXPECT_TRUE(scheduler_->update(answer(output), at_ms(0)).empty());
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
  scheduler_->update(answer(output), at_ms(10));
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
  EXPECT_TRUE(Scheduler::validate({}).has_value());
  EXPECT_EQ(Scheduler::validate({.max_num_seqs = 0}).error().param, "max_num_seqs");
  EXPECT_EQ(Scheduler::validate({.max_num_seqs = 8, .max_num_batched_tokens = 4}).error().message,
            "max_num_batched_tokens must be at least max_num_seqs (8), got 4");
  EXPECT_EQ(Scheduler::validate({.max_chunk_tokens = -1}).error().param, "max_chunk_tokens");
}

}  // namespace
}  // namespace kvasir::sched
