#include "server/api/side_jobs.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace kvasir::server::api {

ApiStatus SideJobs::enqueue(Work work, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return std::unexpected(shutting_down());
    if (waiting_.size() >= max_waiting_) {
      return std::unexpected(
          ApiError{503, fmt::format("{} {}, which is the limit", max_waiting_, what_), {}, "overloaded"});
    }
    if (!thread_.joinable()) {
      try {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
      } catch (const std::exception&) {
        return std::unexpected(ApiError{503, "no thread is left for this", {}, "overloaded"});
      }
    }
    waiting_.push_back({std::move(work), std::move(done)});
  }
  changed_.notify_one();
  return {};
}

void SideJobs::run(const std::stop_token& stop) {
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); }) || stop.stop_requested()) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      job.done(job.work());
    } catch (const std::exception& error) {  // no memory
      job.done(std::unexpected(ApiError{503, error.what(), {}, "overloaded"}));
    }
  }
}

void SideJobs::close() {
  const std::lock_guard closing(closing_);
  std::deque<Job> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    waiting.swap(waiting_);
  }
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  for (const Job& job : waiting) job.done(std::unexpected(shutting_down()));
}

}  // namespace kvasir::server::api
