#include "journal/record_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace kvasir::journal::record_queue_test {
namespace {

kv::StepRecord step(std::int32_t num_tokens, std::size_t num_actions = 0) {
  return {.num_computed_tokens = num_tokens, .actions = std::vector<kv::ActionRecord>(num_actions)};
}

TEST(RecordQueue, GivesRecordsInTheirOrderAcrossThreads) {
  RecordQueue queue({.max_records = 64});
  constexpr std::int32_t kNumRecords = 20000;
  std::thread pushing([&] {
    for (std::int32_t i = 0; i < kNumRecords; ++i) queue.push(step(i, i % 3));
    queue.close();
  });
  std::int32_t num_popped = 0, last = -1;
  while (true) {
    const bool is_over = queue.is_closed();
    while (const auto record = queue.pop()) {
      const auto& popped = std::get<kv::StepRecord>(*record);
      EXPECT_GT(popped.num_computed_tokens, last);
      EXPECT_EQ(std::ssize(popped.actions), popped.num_computed_tokens % 3);
      last = popped.num_computed_tokens;
      ++num_popped;
    }
    if (is_over) break;
    queue.wait();
  }
  pushing.join();
  EXPECT_EQ(num_popped + queue.num_dropped_steps(), kNumRecords);
  EXPECT_GT(num_popped, 0);
}

TEST(RecordQueue, CountsTheStepsThatFoundNoRoomAndKeepsSomeForBeginsAndEnds) {
  RecordQueue queue({.max_records = 8});
  for (std::int32_t i = 0; i < 10; ++i) queue.push(step(i, 5));
  EXPECT_EQ(queue.num_dropped_steps(), 4);
  EXPECT_EQ(queue.num_dropped_actions(), 20);
  queue.push(kv::SequenceRecord{});
  queue.push(kv::SequenceEnd{});
  queue.push(kv::SequenceEnd{});
  EXPECT_EQ(queue.num_dropped_others(), 1);
  for (std::int32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(std::get<kv::StepRecord>(*queue.pop()).num_computed_tokens, i);
  }
  EXPECT_TRUE(std::holds_alternative<kv::SequenceRecord>(*queue.pop()));
  EXPECT_TRUE(std::holds_alternative<kv::SequenceEnd>(*queue.pop()));
  EXPECT_FALSE(queue.pop());
  queue.push(step(11));
  EXPECT_EQ(std::get<kv::StepRecord>(*queue.pop()).num_computed_tokens, 11);
}

TEST(RecordQueue, BoundsItsBytesAndLetsAnEndPassWithoutItsScores) {
  RecordQueue queue({.max_bytes = 100 * static_cast<std::int64_t>(sizeof(kv::ActionRecord))});
  queue.push(step(1, 90));
  queue.push(step(2, 20));
  EXPECT_EQ(queue.num_dropped_steps(), 1);
  kv::SequenceScores scores({.is_kept = true}, 100, 64, 100);
  kv::StepScores added{.num_blocks = 100};
  added.sum.assign(100 * 100, 1.0f);
  added.greatest = added.sum;
  added.num_queries.assign(100, 1);
  scores.add(added);
  queue.push(kv::SequenceEnd{.num_computed_tokens = 5, .scores = {scores}});
  EXPECT_EQ(queue.num_dropped_others(), 0);
  EXPECT_EQ(std::get<kv::StepRecord>(*queue.pop()).actions.size(), 90u);
  const auto end = queue.pop();
  EXPECT_EQ(std::get<kv::SequenceEnd>(*end).num_computed_tokens, 5);
  EXPECT_TRUE(std::get<kv::SequenceEnd>(*end).scores.empty());
  queue.push(step(3, 100));  // what was popped has given its bytes back
  EXPECT_EQ(queue.num_dropped_steps(), 1);
}

}  // namespace
}  // namespace kvasir::journal::record_queue_test
