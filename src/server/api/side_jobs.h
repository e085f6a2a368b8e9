// What takes too long for a thread that answers connections.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "server/api_error.h"

namespace kvasir::server::api {

// One thread does one job after the other. It begins with the first.
//
// Thread safety: all functions may be called from any thread.
class SideJobs {
 public:
  using Work = std::function<ApiStatus()>;
  using Done = std::function<void(ApiStatus)>;

  // `what`: what waits, for the error where more than `max_waiting` do: "models wait to be pulled".
  SideJobs(std::string_view what, std::size_t max_waiting) : what_(what), max_waiting_(max_waiting) {}
  ~SideJobs() { close(); }
  SideJobs(const SideJobs&) = delete;
  SideJobs& operator=(const SideJobs&) = delete;

  // Calls `done` on the thread with what `work` gave, or with 503 where there is no memory for it. Error at once (503):
  // too many wait, no thread is left, or the server ends.
  ApiStatus enqueue(Work work, Done done);
  // Asks work to stop when the server ends.
  std::stop_token stop_token() const { return thread_.get_stop_token(); }
  // Stops what runs. What waits is answered with 503.
  void close();

  static ApiError shutting_down() { return {503, "the server is shutting down", {}, "shutting_down"}; }

 private:
  struct Job {
    Work work;
    Done done;
  };

  void run(const std::stop_token& stop);

  const std::string what_;
  const std::size_t max_waiting_;
  std::mutex closing_;  // before mutex_
  std::mutex mutex_;    // the four below
  std::condition_variable_any changed_;
  std::deque<Job> waiting_;
  bool is_closed_ = false;
  std::jthread thread_;
};

}  // namespace kvasir::server::api
