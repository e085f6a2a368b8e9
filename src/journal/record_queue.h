// Records on their way from the engine thread to the thread that writes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "kv/policy/journal.h"

namespace kvasir::journal {

using Record = std::variant<kv::RunRecord, kv::SequenceRecord, kv::StepRecord, kv::SequenceEnd, kv::ShadowRecord>;

// A ring without locks. The pushing side never waits: what finds no room is lost, and counted. Steps leave
// the last quarter of the ring to what they hang on: a sequence's begin and end.
//
// Thread safety: one thread pushes, one pops; close(), wake() and the counts from any.
class RecordQueue {
 public:
  struct Limits {
    std::size_t max_records = 4096;
    std::int64_t max_bytes = 64 << 20;  // of actions and scores
  };
  explicit RecordQueue(const Limits& limits) : limits_(limits), ring_(limits.max_records) {}

  void push(Record record);
  std::optional<Record> pop();  // nothing: empty
  // Returns when there may be a record, or close() was called.
  void wait();
  void close();
  // wait() returns, as if a record had come.
  void wake() { signal(); }
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  std::int64_t num_dropped_steps() const { return num_dropped_steps_; }
  std::int64_t num_dropped_actions() const { return num_dropped_actions_; }
  std::int64_t num_dropped_others() const { return num_dropped_others_; }

 private:
  bool has_room_for(const Record& record, std::int64_t bytes) const;
  void count_dropped(const Record& record);
  void signal();

  const Limits limits_;
  std::vector<std::optional<Record>> ring_;
  // Both only rise; a record's place is its number modulo the size of the ring.
  std::atomic<std::size_t> num_pushed_{0};
  std::atomic<std::size_t> num_popped_{0};
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::uint32_t> num_signals_{0};
  std::uint32_t num_signals_seen_ = 0;  // of the popping thread
  std::atomic<bool> closed_{false};
  std::atomic<std::int64_t> num_dropped_steps_{0};
  std::atomic<std::int64_t> num_dropped_actions_{0};
  std::atomic<std::int64_t> num_dropped_others_{0};
};

}  // namespace kvasir::journal
