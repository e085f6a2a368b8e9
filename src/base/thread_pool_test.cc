#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace kvasir::thread_pool_test {
namespace {

double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

class ThreadPoolWith : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolWith, ::testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolWith, RunsEachTaskOfManyOperationsExactlyOnce) {
  ThreadPool pool(GetParam());
  std::mt19937 random(42);
  constexpr std::size_t kMaxTasks = 3000;
  // Plain ints: a task run twice or unseen by the caller is also a race that TSan reports.
  std::vector<int> runs(kMaxTasks);
  for (int operation = 0; operation < 1500; ++operation) {
    const std::size_t num_tasks = random() % 10 == 0 ? random() % kMaxTasks : random() % 40;
    std::fill(runs.begin(), runs.end(), 0);
    pool.parallel_for(static_cast<std::int64_t>(num_tasks),
                      [&](std::int64_t task) { ++runs[static_cast<std::size_t>(task)]; });
    for (std::size_t task = 0; task < kMaxTasks; ++task) ASSERT_EQ(runs[task], task < num_tasks ? 1 : 0);
  }
}

// Many more workers than cores, small operations between large ones: workers lose their core with a finished
// operation in hand and come back in the middle of a larger one, whose tasks they must not take for their
// own.
TEST(ThreadPool, WorkersThatComeLateTakeNoTaskOfALaterOperation) {
  ThreadPool pool(16);
  std::atomic<std::int64_t> num_run{0};
  for (int operation = 0; operation < 1'500'000; ++operation) {
    const std::int64_t num_tasks = operation % 2 == 0 ? 2 : 100;
    num_run.store(0, std::memory_order_relaxed);
    pool.parallel_for(num_tasks, [&](std::int64_t) { num_run.fetch_add(1, std::memory_order_relaxed); });
    ASSERT_EQ(num_run, num_tasks) << "operation " << operation;
  }
}

// When all workers keep the same pace, each goes on where no other one does, and nothing is left out.
TEST_P(ThreadPoolWith, ForesaysWhichTaskAWorkerTakesNext) {
  const ThreadPool pool(GetParam());
  for (std::int64_t num_tasks = 4 * GetParam(); num_tasks < 2000; num_tasks += 7) {
    std::vector<int> runs(static_cast<std::size_t>(num_tasks));
    for (int worker = 0; worker < GetParam(); ++worker) {
      std::int64_t task = pool.first_task(worker, num_tasks);
      for (; task < num_tasks; task = pool.task_after(worker, task, num_tasks)) {
        ++runs[static_cast<std::size_t>(task)];
      }
      EXPECT_EQ(task, num_tasks);
    }
    EXPECT_EQ(std::ranges::count(runs, 1), num_tasks);
  }
}

TEST_P(ThreadPoolWith, GivesEachConcurrentTaskItsOwnWorkerIndex) {
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> tasks_of(static_cast<std::size_t>(GetParam()) * 64,
                                     0);  // a cache line apart or more
  for (int operation = 0; operation < 200; ++operation) {
    pool.parallel_for(100,
                      [&](std::int64_t, int worker) { ++tasks_of[static_cast<std::size_t>(worker) * 64]; });
  }
  std::int64_t total = 0;
  for (const std::int64_t tasks : tasks_of) total += tasks;
  EXPECT_EQ(total, 200 * 100);
}

TEST_P(ThreadPoolWith, WakesWorkersThatFellAsleep) {
  ThreadPool pool(GetParam());
  for (int operation = 0; operation < 20; ++operation) {
    std::array<int, 64> runs{};
    pool.parallel_for(64, [&](std::int64_t task) { ++runs[static_cast<std::size_t>(task)]; });
    for (const int count : runs) ASSERT_EQ(count, 1);
    sleep_ms(1);
  }
}

TEST(ThreadPool, StealsTheRestOfARangeWhoseWorkerIsStuck) {
  ThreadPool pool(2);
  std::atomic<int> num_done{0};
  const std::int64_t num_tasks = 64;
  // Task 0 starts worker 0's range and 24 worker 1's: whoever runs one of them waits until all others are
  // done.
  for (const std::int64_t stuck : {0, 24}) {
    num_done = 0;
    pool.parallel_for(num_tasks, [&](std::int64_t task) {
      if (task == stuck) {
        while (num_done.load() < num_tasks - 1) std::this_thread::yield();
      }
      ++num_done;
    });
    EXPECT_EQ(num_done.load(), num_tasks);
  }
}

TEST(ThreadPool, CallerSleepsWhileAnotherWorkerIsLong) {
  ThreadPool pool(2);
  for (int operation = 0; operation < 5; ++operation) {
    std::atomic<int> num_done{0};
    pool.parallel_for(2, [&](std::int64_t task) {
      if (task == 1) sleep_ms(2);
      ++num_done;
    });
    EXPECT_EQ(num_done.load(), 2);
  }
}

TEST(ThreadPool, UsesNoCpuWhenIdle) {
  ThreadPool pool(4);
  pool.parallel_for(64, [](std::int64_t) {});
  sleep_ms(20);
  const double before = process_cpu_seconds();
  sleep_ms(100);
  EXPECT_LT(process_cpu_seconds() - before, 0.01);
}

// Asking for bytes ahead of time is a hint: it never faults, whatever lies there, and keeps nobody awake.
TEST(ThreadPool, MayExpectReadsOfAnything) {
  ThreadPool pool(3);
  const std::vector<std::byte> bytes(1 << 16);
  const std::byte* const nowhere = reinterpret_cast<const std::byte*>(std::uintptr_t{64});
  for (int i = 0; i < 300; ++i) {
    const std::byte* const places[] = {nullptr, bytes.data(), nowhere};
    for (int worker = 0; worker < 3; ++worker) pool.expect_reads(worker, places[(i + worker) % 3], 1 << 16);
    std::atomic<int> num_done{0};
    pool.parallel_for(7, [&](std::int64_t) { ++num_done; });
    ASSERT_EQ(num_done.load(), 7);
  }
  sleep_ms(20);
  const double before = process_cpu_seconds();
  sleep_ms(100);
  EXPECT_LT(process_cpu_seconds() - before, 0.01);
}

TEST(ThreadPoolDeathTest, RefusesNestedOperations) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        pool.parallel_for(8, [&](std::int64_t) { pool.parallel_for(2, [](std::int64_t) {}); });
      },
      "busy_");
}

}  // namespace
}  // namespace kvasir::thread_pool_test
