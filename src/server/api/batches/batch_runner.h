// Asks the lines of batches, behind everything that somebody waits for.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/api/background_writer.h"
#include "server/api/batches/batch.h"
#include "server/api/batches/batch_line.h"

namespace kvasir::server::api {

// Lines of several keys' batches take turns; of one key's batches one runs at a time. At most
// context.max_batch_lines are in the engine, with kBatchPriority at best. A line that is refused for want of
// room (429, 503) is asked again. Each answer is stored before the next line of its batch counts as done, so that a
// restart goes on where the process ended.
//
// Thread safety: add(), cancel(), fail_where(), resume() and stop() from any thread; the rest runs on the executor, of one thread.
class BatchRunner {
 public:
  // Borrows the context, which has a store.
  BatchRunner(ApiContext& context, boost::asio::any_io_executor executor)
      : context_(context), executor_(std::move(executor)), tick_(executor_) {}
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  // It is stored, and its input file is pinned.
  void add(Batch batch);
  // Lines that are not asked yet never will be.
  void cancel(const std::string& id, std::int64_t now_s);
  // Batches of these keys fail with the error.
  void fail_where(std::function<bool(const auth::Tenant& tenant)> is_meant, BatchError error);
  // Goes on with what an earlier process left.
  void resume();
  // Nothing more is asked; lines under way are given up and asked again after a restart.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { kWaiting, kLoading, kValidating, kRunning, kEnded };
  struct Run {
    Batch batch;
    Stage stage = Stage::kWaiting;
    std::string ending;  // "cancelled" or "expired", once it is; else empty
    LineFeed feed;
    std::int64_t next_part = 0;
    bool is_reading = false;
    std::set<std::string> ids;  // while it is validated: seen; then: answered
    std::deque<BatchLine> again;
    std::map<std::string, std::shared_ptr<BackgroundWriter>> asked;
    Clock::time_point not_before;
  };
  using RunPtr = std::shared_ptr<Run>;

  void post(std::function<void()> task);
  void pump();
  void start_waiting();
  void load(const RunPtr& run);
  void read_more(const RunPtr& run);
  void validate(const RunPtr& run);
  void check_line(Run& run, const std::string& line);
  bool ask_next(const RunPtr& run);  // false: it has nothing to ask now
  std::optional<BatchLine> next_line(const RunPtr& run);
  void ask(const RunPtr& run, BatchLine line);
  void record_refusal(const RunPtr& run, const BatchLine& line, const ApiError& error);
  void on_answered(const RunPtr& run, const BatchLine& line, const http::Response* response);
  void record(const RunPtr& run, const std::string& custom_id, bool is_success, std::string line);
  void end_early(const RunPtr& run, std::string ending);
  void fail(const RunPtr& run, BatchError error);
  void finish(const RunPtr& run, std::string status);
  void keep_ticking();

  ApiContext& context_;
  const boost::asio::any_io_executor executor_;
  std::atomic<bool> is_stopping_{false};
  boost::asio::steady_timer tick_;
  bool is_ticking_ = false;
  std::vector<RunPtr> runs_;  // in the order they came
  std::int32_t num_asked_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace kvasir::server::api
