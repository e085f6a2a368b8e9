#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "base/spin_pause.h"

namespace kvasir {
namespace {

// Waking a sleeper costs about 30 us, so waiting that long for the next operation is never much worse than
// having slept; a step's operations follow each other within a few microseconds.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kPausesPerClockRead = 32;
constexpr std::int64_t kChunksPerRange = 64;
constexpr std::int64_t kClosed = std::numeric_limits<std::int32_t>::max();  // a cursor's: no task is left

constexpr std::uint64_t tagged(std::uint32_t operation, std::int64_t next) {
  return std::uint64_t{operation} << 32 | static_cast<std::uint32_t>(next);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads),
      cursors_(new Cursor[static_cast<std::size_t>(num_threads) + 1]),
      expected_(new ExpectedReads[static_cast<std::size_t>(num_threads)]) {
  CHECK(num_threads >= 1);
  threads_.reserve(static_cast<std::size_t>(num_threads) - 1);
  try {
    for (int worker = 1; worker < num_threads; ++worker) {
      threads_.emplace_back([this, worker] { worker_main(worker); });
      pthread_setname_np(threads_.back().native_handle(), "kvasir-worker");
    }
  } catch (...) {  // no memory for a thread
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  operation_.fetch_add(1);
  operation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::expect_reads(int worker, const std::byte* begin, std::int64_t num_bytes) {
  ExpectedReads& expected = expected_[static_cast<std::size_t>(worker)];
  expected.next.store(nullptr, std::memory_order_relaxed);
  if (begin == nullptr) return;
  expected.end.store(begin + num_bytes, std::memory_order_relaxed);
  expected.next.store(begin, std::memory_order_release);
}

// Asks for a few of the expected lines; past them it pauses. The caller may expect something else meanwhile.
void ThreadPool::prefetch_expected(int worker) {
  ExpectedReads& expected = expected_[static_cast<std::size_t>(worker)];
  const std::byte* next = expected.next.load(std::memory_order_acquire);
  const std::byte* const end = expected.end.load(std::memory_order_relaxed);
  if (next == nullptr || next >= end) return spin_pause();
  constexpr std::ptrdiff_t kLine = 64, kLines = 4;
  for (int i = 0; i < kLines; ++i) __builtin_prefetch(next + i * kLine, 0, 2);
  expected.next.compare_exchange_strong(next, next + kLines * kLine, std::memory_order_relaxed);
}

// Spins until `ready` holds; false when it does not within kSpin.
template <class Ready>
bool ThreadPool::spin_until(int worker, const Ready& ready) {
  if (ready()) return true;
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      prefetch_expected(worker);
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

void ThreadPool::run(std::int64_t num_tasks, Invoke body, void* function) {
  CHECK(num_tasks < std::numeric_limits<std::int32_t>::max());
  CHECK(!busy_.exchange(true, std::memory_order_relaxed));
  if (num_threads_ == 1 || num_tasks <= 1) {
    body(function, 0, num_tasks, 0);
  } else {
    const std::uint32_t operation = publish(num_tasks, body, function);
    work(operation, 0);
    wait_until_done();
  }
  busy_.store(false, std::memory_order_relaxed);
}

// Makes the operation known to the workers and returns its number. Requires: no task of the one before is
// left.
std::uint32_t ThreadPool::publish(std::int64_t num_tasks, Invoke body, void* function) {
  const std::uint32_t operation = operation_.load(std::memory_order_relaxed) + 1;
  const auto set_cursor = [&](int range, std::int64_t next) {
    cursors_[static_cast<std::size_t>(range)].tagged_next.store(tagged(operation, next),
                                                                std::memory_order_release);
  };
  for (int i = 0; i <= num_threads_; ++i) set_cursor(i, kClosed);
  invoke_.store(body, std::memory_order_release);
  function_.store(function, std::memory_order_release);
  num_tasks_.store(num_tasks, std::memory_order_release);
  num_unfinished_.store(static_cast<std::int32_t>(num_tasks), std::memory_order_relaxed);
  for (int i = 0; i <= num_threads_; ++i) set_cursor(i, range(i, num_tasks).begin);
  // Sequentially consistent, as num_sleeping_ is: either the worker going to sleep sees the new operation,
  // or it is seen here as sleeping.
  operation_.store(operation);
  if (num_sleeping_.load() > 0) operation_.notify_all();
  return operation;
}

ThreadPool::Range ThreadPool::range(int index, std::int64_t num_tasks) const {
  const std::int64_t num_owned = num_tasks - num_tasks / 4;
  const std::int64_t begin = num_owned * index / num_threads_;
  const std::int64_t end = index == num_threads_ ? num_tasks : num_owned * (index + 1) / num_threads_;
  return {begin, end, std::max<std::int64_t>(1, (end - begin) / kChunksPerRange)};
}

// Within a chunk of a range the next one; behind its own range a worker goes on with the rest, and there with
// the chunk that the others leave when they all take theirs at the same pace.
std::int64_t ThreadPool::task_after(int worker, std::int64_t task, std::int64_t num_tasks) const {
  if (num_threads_ == 1) return task + 1;
  const Range rest = range(num_threads_, num_tasks);
  const Range own = range(worker, num_tasks);
  if (task < rest.begin) {
    if (task + 1 < own.end || task >= own.end) return task + 1;
    return std::min(rest.begin + worker * rest.chunk, num_tasks);
  }
  if ((task + 1 - rest.begin) % rest.chunk != 0) return task + 1;
  return std::min(task + 1 + (num_threads_ - 1) * rest.chunk, num_tasks);
}

// Own range first, then the shared rest, then what the others have not started.
void ThreadPool::work(std::uint32_t operation, int worker) {
  const std::int64_t num_tasks = num_tasks_.load(std::memory_order_acquire);
  std::int64_t num_finished = drain(operation, worker, worker, range(worker, num_tasks));
  num_finished += drain(operation, num_threads_, worker, range(num_threads_, num_tasks));
  for (int i = 1; i < num_threads_; ++i) {
    const int victim = (worker + i) % num_threads_;
    num_finished += drain(operation, victim, worker, range(victim, num_tasks));
  }
  if (num_finished == 0) return;
  const auto finished = static_cast<std::int32_t>(num_finished);
  const bool last = num_unfinished_.fetch_sub(finished) == finished;
  if (last && caller_sleeping_.load()) num_unfinished_.notify_one();
}

// Runs tasks of one range until it is empty or belongs to another operation; returns how many it ran.
std::int64_t ThreadPool::drain(std::uint32_t operation, int range, int worker, Range tasks) {
  std::atomic<std::uint64_t>& tagged_next = cursors_[static_cast<std::size_t>(range)].tagged_next;
  const Invoke body = invoke_.load(std::memory_order_acquire);
  void* const function = function_.load(std::memory_order_acquire);
  std::int64_t num_finished = 0;
  std::uint64_t seen = tagged_next.load(std::memory_order_relaxed);
  while (seen >> 32 == operation) {
    const auto begin = static_cast<std::int64_t>(seen & 0xffffffffu);
    if (begin >= tasks.end) break;
    const std::int64_t end = std::min(begin + tasks.chunk, tasks.end);
    if (!tagged_next.compare_exchange_weak(seen, tagged(operation, end), std::memory_order_acq_rel,
                                           std::memory_order_relaxed)) {
      continue;
    }
    body(function, begin, end, worker);
    num_finished += end - begin;
    seen = tagged_next.load(std::memory_order_relaxed);
  }
  return num_finished;
}

void ThreadPool::wait_until_done() {
  const auto done = [this] { return num_unfinished_.load(std::memory_order_acquire) == 0; };
  if (spin_until(0, done)) return;
  caller_sleeping_.store(true);
  for (std::int32_t left = num_unfinished_.load(); left != 0; left = num_unfinished_.load()) {
    num_unfinished_.wait(left);
  }
  caller_sleeping_.store(false);
}

void ThreadPool::worker_main(int worker) {
  std::uint32_t operation = 0;
  for (;;) {
    operation = next_operation(worker, operation);
    if (stopping_.load(std::memory_order_relaxed)) return;
    work(operation, worker);
  }
}

std::uint32_t ThreadPool::next_operation(int worker, std::uint32_t seen) {
  std::uint32_t operation = seen;
  const auto changed = [this, seen, &operation] {
    operation = operation_.load(std::memory_order_acquire);
    return operation != seen;
  };
  while (!spin_until(worker, changed)) {
    num_sleeping_.fetch_add(1);
    operation_.wait(seen);
    num_sleeping_.fetch_sub(1);
  }
  return operation;
}

}  // namespace kvasir
