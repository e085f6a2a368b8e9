// Shadows that have ended and wait to be learned from.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "learn/shadow_act.h"

namespace kvasir::learn {

// Thread safety: every member may be called from any thread.
class ShadowQueue {
 public:
  static constexpr std::size_t kMost = 16;

  // One that finds no room is counted and forgotten.
  void push(ShadowSequence sequence) {
    const std::scoped_lock lock(mutex_);
    if (sequences_.size() >= kMost) {
      ++num_dropped_;
      return;
    }
    sequences_.push_back(std::move(sequence));
    changed_.notify_one();
  }
  // Waits for one; nothing: it was asked to stop.
  std::optional<ShadowSequence> pop(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !sequences_.empty(); })) return std::nullopt;
    ShadowSequence sequence = std::move(sequences_.front());
    sequences_.pop_front();
    return sequence;
  }
  std::int64_t num_dropped() const {
    const std::scoped_lock lock(mutex_);
    return num_dropped_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<ShadowSequence> sequences_;
  std::int64_t num_dropped_ = 0;
};

}  // namespace kvasir::learn
