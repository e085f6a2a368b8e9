#include "journal/record_queue.h"

#include <utility>

namespace kvasir::journal {
namespace {

// The bytes that a record holds outside itself.
std::int64_t bytes_of(const Record& record) {
  if (const auto* step = std::get_if<kv::StepRecord>(&record)) {
    return static_cast<std::int64_t>(step->actions.size() * sizeof(kv::ActionRecord));
  }
  std::int64_t bytes = 0;
  if (const auto* end = std::get_if<kv::SequenceEnd>(&record)) {
    for (const kv::SequenceScores& scores : end->scores) {
      bytes += std::int64_t{scores.num_cells()} * scores.num_blocks() * kv::SequenceScores::kBytesPerCell;
    }
  }
  return bytes;
}

}  // namespace

bool RecordQueue::has_room_for(const Record& record, std::int64_t bytes) const {
  const std::size_t num_queued = num_pushed_.load(std::memory_order_relaxed) - num_popped_.load();
  const std::size_t reserved = std::holds_alternative<kv::StepRecord>(record) ? ring_.size() / 4 : 0;
  return num_queued + reserved < ring_.size() && bytes_.load() + bytes <= limits_.max_bytes;
}

void RecordQueue::push(Record record) {
  if (auto* end = std::get_if<kv::SequenceEnd>(&record); end && !has_room_for(record, bytes_of(record))) {
    end->scores.clear();  // that it has ended matters more than how its cells fared
  }
  const std::int64_t bytes = bytes_of(record);
  if (!has_room_for(record, bytes)) return count_dropped(record);
  const std::size_t place = num_pushed_.load(std::memory_order_relaxed);
  ring_[place % ring_.size()] = std::move(record);
  bytes_ += bytes;
  num_pushed_.store(place + 1, std::memory_order_release);
  signal();
}

std::optional<Record> RecordQueue::pop() {
  const std::size_t place = num_popped_.load(std::memory_order_relaxed);
  if (place == num_pushed_.load(std::memory_order_acquire)) return std::nullopt;
  std::optional<Record> record = std::exchange(ring_[place % ring_.size()], std::nullopt);
  bytes_ -= bytes_of(*record);
  num_popped_.store(place + 1, std::memory_order_release);
  return record;
}

void RecordQueue::wait() {
  num_signals_.wait(num_signals_seen_);
  num_signals_seen_ = num_signals_;
}

void RecordQueue::close() {
  closed_.store(true, std::memory_order_release);
  signal();
}

void RecordQueue::signal() {
  ++num_signals_;
  num_signals_.notify_one();  // no system call while no thread waits
}

void RecordQueue::count_dropped(const Record& record) {
  if (const auto* step = std::get_if<kv::StepRecord>(&record)) {
    ++num_dropped_steps_;
    num_dropped_actions_ += std::ssize(step->actions);
  } else {
    ++num_dropped_others_;
  }
}

}  // namespace kvasir::journal
