// The stretch of a batch in which every stream generates: what generation speed is measured over.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Opens when the last of the streams has its first token, closes when each has `n_gen` more. Between the two
// all streams run in every step, so it spans exactly n_gen steps.
//
// Thread safety: record() on the engine thread beside the others on the caller's.
class LockstepWindow {
 public:
  using Clock = std::chrono::steady_clock;
  struct Times {
    Clock::time_point begin;
    Clock::time_point end;
  };

  LockstepWindow(std::size_t num_streams, std::int32_t n_gen) : n_gen_(n_gen), streams_(num_streams) {}

  // News of one stream, in the engine's order.
  void record(std::size_t stream, const RequestOutput& output);

  // Until the window has closed, all streams have ended without that, or `patience` is over; false: the last.
  bool wait_until_closed(std::chrono::milliseconds patience);
  // Until all streams have ended. Errors: the first stream's own; kInternal when the window never closed.
  Result<Times> wait_until_finished();
  // Bytes of KV that the streams kept, as Usage, of the one that had news last. Call after
  // wait_until_finished().
  double kv_bytes_share() const { return kv_bytes_share_; }
  // Per stream, all that it gave. Call after wait_until_finished().
  std::vector<std::vector<TokenId>> take_tokens();

 private:
  struct Stream {
    std::vector<TokenId> tokens;
    std::size_t tokens_at_begin = 0;
  };
  bool all_finished() const { return num_finished_ == streams_.size(); }
  void open(Clock::time_point now);

  const std::int32_t n_gen_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<Stream> streams_;
  double kv_bytes_share_ = 1.0;
  std::size_t num_started_ = 0;
  std::size_t num_complete_ = 0;  // have their n_gen tokens
  std::size_t num_finished_ = 0;
  std::optional<Clock::time_point> begin_;
  std::optional<Clock::time_point> end_;
  std::optional<Error> error_;
};

}  // namespace kvasir::cli
