// Adapters that come back to memory for requests that wait for them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "engine/adapter_set.h"
#include "kvasir/engine.h"

namespace kvasir {

// One thread of low priority reads them, one after the other. It begins with the first. Where others leave no room it waits
// until one of them has ended, for a minute at most.
//
// Thread safety: all functions may be called from any thread.
class AdapterReloader {
 public:
  // The set outlives this.
  explicit AdapterReloader(AdapterSet& adapters) : adapters_(adapters) {}
  ~AdapterReloader() { close(); }

  // As Engine::prepare_adapter().
  void prepare(std::string_view name, std::stop_token stop, Engine::AdapterSink sink);
  // Answers those who wait with kUnavailable. No sink is called afterwards but at once.
  void close();

 private:
  static constexpr std::size_t kMaxWaiting = 256;
  struct Job {
    std::string name;
    std::stop_token stop;
    Engine::AdapterSink sink;
  };

  Status enqueue(Job& job);
  void run(const std::stop_token& stop);
  Result<AdapterHold> acquire(const std::string& name);
  Result<AdapterHold> wait_for(const Job& job, const std::stop_token& stop);

  AdapterSet& adapters_;
  std::mutex closing_;  // before mutex_
  std::mutex mutex_;    // all below
  std::deque<Job> waiting_;
  bool is_closed_ = false;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace kvasir
