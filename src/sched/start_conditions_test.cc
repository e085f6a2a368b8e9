#include "sched/start_conditions.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::sched::start_conditions_test {
namespace {

SequenceRequest make_request(std::int32_t prompt, std::int32_t max_tokens) {
  SequenceRequest request;
  request.prompt_token_ids.assign(static_cast<std::size_t>(prompt), 1);
  request.stop.max_tokens = max_tokens;
  return request;
}

Sequence make_sequence(kv::KvCacheManager& kv, std::int64_t id, std::int32_t prompt, std::int32_t computed) {
  Sequence sequence;
  sequence.id = SequenceId{id};
  sequence.token_ids.assign(static_cast<std::size_t>(prompt), 1);
  sequence.num_prompt_tokens = prompt;
  sequence.num_computed_tokens = computed;
  sequence.kv = kv.open("", false, prompt);
  EXPECT_TRUE(kv.allocate(sequence.kv, computed));
  return sequence;
}

TEST(StartConditions, RefusesWhatCouldNeverFitAndGivesBothNumbers) {
  const kv::KvCacheManager kv({.groups = {{.num_blocks = 4}}, .prefix_cache = false});
  EXPECT_TRUE(check_can_ever_fit(make_request(60, 5), kv, 16).has_value());  // the 65th token is never run
  const auto refusal = check_can_ever_fit(make_request(60, 6), kv, 16);
  ASSERT_FALSE(refusal.has_value());
  EXPECT_EQ(refusal.error().kind, ErrorKind::kUnmet);
  EXPECT_EQ(refusal.error().message,
            "the request needs KV for 65 tokens (prompt 60 + max_tokens 6), the cache holds 64");
}

TEST(StartConditions, SumsWithoutOverflow) {
  const kv::KvCacheManager kv({.groups = {{.num_blocks = 4}}, .prefix_cache = false});
  EXPECT_FALSE(
      check_can_ever_fit(make_request(60, std::numeric_limits<std::int32_t>::max()), kv, 16).has_value());
}

TEST(StartConditions, CountsWhatRunningSequencesStillNeed) {
  kv::KvCacheManager kv({.groups = {{.num_blocks = 6}}, .prefix_cache = false});
  Sequence running = make_sequence(kv, 0, 64, 16);  // holds 1 block, needs 3 more
  std::vector<Sequence*> all{&running};
  const Sequence small = make_sequence(kv, 1, 32, 0);
  const Sequence large = make_sequence(kv, 2, 33, 0);
  EXPECT_TRUE(kv_fits(small, all, kv, 16));
  EXPECT_FALSE(kv_fits(large, all, kv, 16));
}

TEST(StartConditions, ChoiceWaitsUntilASiblingHoldsThePrompt) {
  kv::KvCacheManager kv({.groups = {{.num_blocks = 6}}, .prefix_cache = false});
  Sequence leader = make_sequence(kv, 0, 20, 16);
  const Sequence choice = make_sequence(kv, 1, 20, 0);
  EXPECT_FALSE(awaits_sibling(choice, {}));
  std::vector<Sequence*> running{&leader};
  EXPECT_TRUE(awaits_sibling(choice, running));
  EXPECT_EQ(find_prompt_holder(choice, running), nullptr);
  leader.num_computed_tokens = 20;
  EXPECT_FALSE(awaits_sibling(choice, running));
  EXPECT_EQ(find_prompt_holder(choice, running), &leader);
  leader.request_id = RequestId{7};  // somebody else's
  EXPECT_EQ(find_prompt_holder(choice, running), nullptr);
}

}  // namespace
}  // namespace kvasir::sched::start_conditions_test
