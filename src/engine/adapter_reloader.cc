#include "engine/adapter_reloader.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <exception>
#include <utility>

namespace kvasir {
namespace {

constexpr int kReloadNiceness = 10;  // steps go first
// Without room for it a file is not read, so trying anew is cheap.
constexpr std::chrono::milliseconds kRetryTime{20}, kMostWaitTime{60000};

Error reload_closed_error() { return {ErrorKind::kUnavailable, "the server is shutting down"}; }

}  // namespace

void AdapterReloader::prepare(std::string_view name, std::stop_token stop, Engine::AdapterSink sink) {
  if (AdapterSet::Held held = adapters_.find(name)) return sink(AdapterHold(std::move(held)));
  Job job = {std::string(name), std::move(stop), std::move(sink)};
  if (Status queued = enqueue(job); !queued) job.sink(std::unexpected(std::move(queued).error()));
}

// With an error the job is still the caller's.
Status AdapterReloader::enqueue(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return std::unexpected(reload_closed_error());
    if (waiting_.size() >= kMaxWaiting) {
      return make_error(ErrorKind::kUnavailable,
                        fmt::format("adapter: {} requests wait for adapters, which is the limit", kMaxWaiting), "adapter");
    }
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& ends) { run(ends); });
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
  return {};
}

void AdapterReloader::run(const std::stop_token& stop) {
  ::setpriority(PRIO_PROCESS, 0, kReloadNiceness);  // of this thread alone, on Linux
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); }) || stop.stop_requested()) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job.sink(job.stop.stop_requested() ? make_error(ErrorKind::kCancelled, "the client has left") : wait_for(job, stop));
  }
}

Result<AdapterHold> AdapterReloader::wait_for(const Job& job, const std::stop_token& stop) {
  for (auto waited = kRetryTime; ; waited += kRetryTime) {
    Result<AdapterHold> held = acquire(job.name);
    if (held || held.error().kind != ErrorKind::kUnavailable || waited > kMostWaitTime) return held;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, kRetryTime, [] { return false; });
    if (stop.stop_requested()) return std::unexpected(reload_closed_error());
    if (job.stop.stop_requested()) return make_error(ErrorKind::kCancelled, "the client has left");
  }
}

Result<AdapterHold> AdapterReloader::acquire(const std::string& name) {
  try {
    KVASIR_TRY(AdapterSet::Held held, adapters_.acquire(name));
    return AdapterHold(std::move(held));
  } catch (const std::exception& error) {  // no memory
    return make_error(ErrorKind::kMachine, error.what());
  }
}

void AdapterReloader::close() {
  const std::lock_guard closing(closing_);
  std::deque<Job> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    waiting.swap(waiting_);
  }
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  for (Job& job : waiting) job.sink(std::unexpected(reload_closed_error()));
}

}  // namespace kvasir
