// The team of threads that works through a step's operations.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace kvasir {

// Splits one operation after the other over a fixed team. The calling thread is worker 0 and takes part; the
// others spin for about 50 us after an operation, so that the next one of the same step reaches them in well
// under a microsecond, and then sleep, so that an idle process uses no CPU.
//
// The first three quarters of the tasks belong to the workers in equal contiguous ranges, the same each time,
// so that a worker meets the weights its L2 cache holds; the rest goes to free workers. A worker that is done
// helps itself to what others have not started: one that lost its core delays the operation by the chunk it
// holds (at most 1/64 of a range), not by its range.
//
// Thread safety: one thread calls parallel_for at a time; tasks must not call it (CHECK) and must not throw.
class ThreadPool {
 public:
  // Starts num_threads - 1 threads. Requires: num_threads >= 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls fn(task) or fn(task, worker) exactly once for each task in [0, num_tasks), 0 <= worker <
  // num_threads, and returns when all are done; what the tasks wrote is then visible to the caller. No
  // allocation. Requires: num_tasks < 2^31.
  template <class F>
  void parallel_for(std::int64_t num_tasks, F&& fn) {
    using Function = std::remove_reference_t<F>;
    run(num_tasks, &invoke<Function>, const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

  // The first task of a worker's own range in an operation of num_tasks.
  std::int64_t first_task(int worker, std::int64_t num_tasks) const { return range(worker, num_tasks).begin; }

  // The task that a worker will most likely run after `task` of num_tasks; num_tasks when that is none.
  std::int64_t task_after(int worker, std::int64_t task, std::int64_t num_tasks) const;

  // Announces the bytes that `worker` will read when the next operation begins, or null. It prefetches them
  // while it has nothing to do, so that memory is not idle either. They need not exist by then. Called by the
  // thread of parallel_for.
  void expect_reads(int worker, const std::byte* begin, std::int64_t num_bytes);

 private:
  // Runs tasks [begin, end) as `worker`.
  using Invoke = void (*)(void* function, std::int64_t begin, std::int64_t end, int worker);

  template <class Function>
  static void invoke(void* function, std::int64_t begin, std::int64_t end, int worker) {
    auto& fn = *static_cast<Function*>(function);
    for (std::int64_t task = begin; task < end; ++task) {
      if constexpr (std::is_invocable_v<Function&, std::int64_t, int>) {
        fn(task, worker);
      } else {
        fn(task);
      }
    }
  }

  // The next task of a range, tagged with the operation it belongs to: a worker that wakes up late, holding
  // an old tag, cannot take a task of a newer operation. On its own cache line (two: the prefetcher pairs
  // them).
  struct alignas(128) Cursor {
    std::atomic<std::uint64_t> tagged_next{0};
  };
  // The bytes that a worker prefetches while it waits.
  struct alignas(128) ExpectedReads {
    std::atomic<const std::byte*> next{nullptr};
    std::atomic<const std::byte*> end{nullptr};
  };
  struct Range {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t chunk;
  };

  void run(std::int64_t num_tasks, Invoke body, void* function);
  std::uint32_t publish(std::int64_t num_tasks, Invoke body, void* function);
  void work(std::uint32_t operation, int worker);
  std::int64_t drain(std::uint32_t operation, int range, int worker, Range tasks);
  Range range(int index, std::int64_t num_tasks) const;
  void prefetch_expected(int worker);
  template <class Ready>
  bool spin_until(int worker, const Ready& ready);
  void wait_until_done();
  void stop();
  void worker_main(int worker);
  // The operation after `seen`, once there is one.
  std::uint32_t next_operation(int worker, std::uint32_t seen);

  const int num_threads_;
  // Ranges 0 .. num_threads - 1 are the workers' own; range num_threads is the shared rest.
  const std::unique_ptr<Cursor[]> cursors_;
  const std::unique_ptr<ExpectedReads[]> expected_;

  // The operation. A worker that comes late may read a newer one here than it was called for, or a mixture.
  // It uses what it read only after taking a task of its own operation, and then all of it was that
  // operation's: run() closes the cursors to the old operation before it stores (release) the new one, so a
  // worker that has read (acquire) any of the new finds every cursor closed.
  std::atomic<Invoke> invoke_{nullptr};
  std::atomic<void*> function_{nullptr};
  std::atomic<std::int64_t> num_tasks_{0};
  std::atomic<bool> busy_{false};
  std::atomic<bool> stopping_{false};

  alignas(128) std::atomic<std::uint32_t> operation_{0};  // counts up; the workers watch it
  std::atomic<std::int32_t> num_sleeping_{0};             // workers that need a wake-up call
  alignas(128) std::atomic<std::int32_t> num_unfinished_{0};
  std::atomic<bool> caller_sleeping_{false};

  std::vector<std::thread> threads_;
};

}  // namespace kvasir
