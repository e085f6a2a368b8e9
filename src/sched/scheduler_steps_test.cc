// The tokens that a step runs, and the time that a step may take.
#include "sched/scheduler_fixture.h"

namespace kvasir::sched::scheduler_steps_test {
namespace {

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
  ASSERT_EQ(updates_[0].tokens.size(), 1u);
  EXPECT_EQ(updates_[0].tokens[0].token, kSampled);
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

TEST_F(SchedulerTest, RunsWholePromptsInOneStepOrNotAtAll) {
  build({.max_num_seqs = 4, .max_num_batched_tokens = 40, .runs_whole_prompts = true}, {{.num_blocks = 32}}, false);
  for (const std::int32_t num_tokens : {10, 20, 15, 40, 1}) {
    add(make_request(static_cast<std::uint64_t>(num_tokens), prompt_of(num_tokens), 0));
  }
  EXPECT_EQ(scheduler_->add(make_request(9, prompt_of(41), 0), at_ms(0)).error().message,
            "the prompt must have at most 40 tokens, as many as a step, got 41");
  EXPECT_EQ(scheduler_->add(make_request(9, prompt_of(4), 1), at_ms(0)).error().kind, ErrorKind::kUsage);
  std::vector<std::vector<std::int32_t>> steps;
  while (scheduler_->has_unfinished()) {
    const SchedulerOutput& output = scheduler_->schedule(at_ms(0));
    std::vector<std::int32_t>& tokens = steps.emplace_back();
    result_.clear();
    for (const ScheduledSequence& s : output.sequences) {
      tokens.push_back(s.num_tokens);
      result_.num_tokens.push_back(0);
    }
    EXPECT_EQ(scheduler_->update(result_, at_ms(0)).size(), tokens.size());
  }
  EXPECT_EQ(steps, (std::vector<std::vector<std::int32_t>>{{10, 20}, {15}, {40}, {1}}));
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

// The target is 1,000 ms, and how long steps take is known.
class LongPromptTest : public SchedulerTest {
 protected:
  void learn(PrefillOnlyConfig prefill_only = {}) {
    build({.max_num_seqs = 4,
           .max_num_batched_tokens = 1024,
           .max_step_ms = 75.0,
           .waiting = {.policy = WaitingPolicy::kSloValue, .ageing_ms = 2000.0},
           .ttft_target_ms = 1000.0,
           .prefill_only = prefill_only},
          {{.num_blocks = 600, .cells_per_block = std::max(1, prefill_only.num_layers)}});
    for (std::uint64_t id = 1; id <= 40; ++id) {
      add(make_request(id, prompt_of(static_cast<std::int32_t>(20 * id), static_cast<TokenId>(1000 * id)),
                       1));
      timed_step();
    }
  }
  SequenceId add_now(SequenceRequest request) {
    return scheduler_->add(std::move(request), at_ms(now_ms_)).value();
  }
  SequenceId add_long(std::int32_t priority = 0) {
    SequenceRequest request = make_request(50, prompt_of(4000, 50'000), 1);
    request.priority = priority;
    return add_now(std::move(request));
  }
  bool is_there(SequenceId id) const { return scheduler_->sequences().contains(id); }
};

TEST_F(LongPromptTest, ItsStepsAreShortAtEveryDepth) {
  ms_per_key_ = 0.0005;
  learn();
  for (const std::int32_t priority : {0, 1}) {
    for (const SequenceId id = add_long(priority); is_there(id);) {
      const std::int64_t began_ms = now_ms_;
      timed_step();
      ASSERT_LE(now_ms_ - began_ms, 150) << "an eighth of the target";
    }
  }
}

// However old the long one is by then, and also where it is called less important.
TEST_F(LongPromptTest, AShortOneWaitsNeitherAtItsBeginningNorAtItsEnd) {
  for (const auto& [num_computed, priority] :
       {std::pair{100, 0}, {2000, 0}, {3400, 0}, {100, 1}, {2000, 1}, {3400, 1}}) {
    learn();
    const SequenceId id = add_long(priority);
    while (scheduler_->sequences().at(id).num_computed_tokens < num_computed) timed_step();
    const SequenceId quick = add_now(make_request(51, prompt_of(10, 90'000), 1));
    const std::int64_t came_ms = now_ms_;
    while (is_there(quick)) timed_step();
    EXPECT_LT(now_ms_ - came_ms, 500) << num_computed << " " << priority;
    EXPECT_TRUE(is_there(id)) << num_computed << " " << priority;
  }
}

// They are computed one after the other, whoever comes.
TEST_F(LongPromptTest, ItDoesNotGiveWayToOthersAsLong) {
  learn();
  const SequenceId first = add_long();
  while (scheduler_->sequences().at(first).num_computed_tokens < 2000) timed_step();
  std::vector<SequenceId> others;
  for (std::int32_t i = 0; i < 4; ++i) {
    others.push_back(
        add_now(make_request(60 + static_cast<std::uint64_t>(i), prompt_of(3000, 100'000 + 5000 * i), 1)));
  }
  while (is_there(first)) timed_step();
  const auto has_begun = [&](SequenceId id) {
    return is_there(id) && scheduler_->sequences().at(id).num_computed_tokens > 0;
  };
  EXPECT_LE(std::ranges::count_if(others, has_begun), 1) << "in the rest of its last step";
  while (scheduler_->has_unfinished()) {
    timed_step();
    EXPECT_LE(std::ranges::count_if(others, has_begun), 2);
  }
}

// Its short steps are no turns taken from them.
TEST_F(LongPromptTest, PrefillOnlyOnesHaveTheirTurns) {
  learn({.max_tokens = 2048, .num_layers = 30});
  const SequenceId id = add_long();
  timed_step();
  SequenceRequest scoring = make_request(51, prompt_of(2000, 90'000), 0);
  scoring.want_prompt_logits = true;
  scoring.use_prefix_cache = false;
  const SequenceId scored = add_now(std::move(scoring));
  ASSERT_TRUE(scheduler_->sequences().at(scored).is_prefill_only);
  int num_steps = 0, num_beside = 0;
  for (; is_there(scored) && is_there(id); ++num_steps) {
    const std::int32_t before = scheduler_->sequences().at(id).num_computed_tokens;
    timed_step();
    num_beside += !is_there(id) || scheduler_->sequences().at(id).num_computed_tokens > before ? 1 : 0;
  }
  EXPECT_FALSE(is_there(scored));
  EXPECT_GE(num_steps, 30);
  EXPECT_LE(num_beside, (num_steps + 1) / 2) << num_steps;
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

}  // namespace
}  // namespace kvasir::sched::scheduler_steps_test
