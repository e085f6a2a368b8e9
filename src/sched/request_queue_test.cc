#include "sched/request_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::sched::request_queue_test {
namespace {

Sequence make(std::int64_t id, std::int32_t running_class) {
  Sequence sequence;
  sequence.id = SequenceId{id};
  sequence.running_class = running_class;
  return sequence;
}

std::vector<std::int64_t> order_of(const RequestQueue& queue) {
  std::vector<std::int64_t> ids;
  for (const Sequence* sequence : queue) ids.push_back(static_cast<std::int64_t>(sequence->id));
  return ids;
}

TEST(RequestQueue, ServesFirstComeFirstWithinAPriority) {
  Sequence a = make(0, 1), b = make(1, 0), c = make(2, 1), d = make(3, 0);
  RequestQueue queue;
  for (Sequence* sequence : {&a, &b, &c, &d}) queue.push(sequence);
  EXPECT_EQ(order_of(queue), (std::vector<std::int64_t>{1, 3, 0, 2}));
}

TEST(RequestQueue, PutsAReturningSequenceBackAtTheHead) {
  Sequence a = make(0, 0), b = make(1, 0);
  RequestQueue queue;
  queue.push(&b);
  queue.push(&a);
  EXPECT_EQ(order_of(queue), (std::vector<std::int64_t>{0, 1}));
  queue.remove(&a);
  EXPECT_EQ(queue.size(), 1u);
}

}  // namespace
}  // namespace kvasir::sched::request_queue_test
