// Where each worker's reading of weights will begin in the operation to come, as the step before had it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"

namespace kvasir::backend {

// A step runs the same matmuls in the same order as the one before, so a worker that waits for the next can
// already ask memory for its weights. A wrong guess costs a few reads. A step of some layers alone
// guesses nothing, and leaves what was learned from whole ones. One caller at a time.
class WeightPrefetcher {
 public:
  explicit WeightPrefetcher(ThreadPool& pool) : pool_(pool) {}

  void begin_step(bool runs_all_layers) {
    if (next_ > 0) first_reads_.resize(next_);
    next_ = 0;
    is_on_ = runs_all_layers;
  }

  // The pool's coming operation has num_tasks tasks, 1 or more, and task i begins to read at address_of(i).
  template <class AddressOf>
  void announce(std::int64_t num_tasks, const AddressOf& address_of) {
    CHECK(num_tasks >= 1);
    if (!is_on_) return;
    if (next_ == first_reads_.size()) first_reads_.emplace_back(pool_.num_threads());
    std::vector<const std::byte*>& reads = first_reads_[next_];
    ++next_;
    const std::vector<const std::byte*>& expected = first_reads_[next_ < first_reads_.size() ? next_ : 0];
    for (int worker = 0; worker < pool_.num_threads(); ++worker) {
      const std::int64_t task = std::min(pool_.first_task(worker, num_tasks), num_tasks - 1);
      reads[static_cast<std::size_t>(worker)] = address_of(task);
      pool_.expect_reads(worker, expected[static_cast<std::size_t>(worker)], kExpectedBytes);
    }
  }

 private:
  // A microsecond of a fast memory, which is about what lies between two operations.
  static constexpr std::int64_t kExpectedBytes = 48 << 10;

  ThreadPool& pool_;
  std::vector<std::vector<const std::byte*>> first_reads_;  // per operation of a step: per worker
  std::size_t next_ = 0;
  bool is_on_ = true;
};

}  // namespace kvasir::backend
