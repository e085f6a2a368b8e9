// Fetches the bytes of one file of the hub.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "kvasir/result.h"
#include "store/hub/hub_client.h"
#include "store/hub/partial_file.h"

namespace kvasir::store {

// Up to four connections, each with one piece of the file at a time. A connection that drops goes on where it
// ended; a target that has expired is asked for again; a server that answers a range with the whole file gets
// one connection, which then starts at the beginning.
//
// Thread safety: none; the object has threads of its own while run() runs.
class HubDownload {
 public:
  static constexpr std::int32_t kMostConnections = 4;

  // All must outlive the object.
  HubDownload(const HubSettings& settings, const HubName& name, const std::string& commit,
              const HubFile& file, PartialFile& partial)
      : settings_(settings), name_(name), commit_(commit), file_(file), partial_(partial) {}

  // Returns when the file is whole, not yet checked. `report` gets the bytes of the file that are there,
  // about ten times a second on this thread; false ends the work with kCancelled. Errors: as of HubClient,
  // and kMachine (the disk).
  Status run(const std::function<bool(std::int64_t)>& report);

 private:
  class Connection;

  // A target and how many there were before it.
  struct SharedTarget {
    HubTarget target;
    std::int32_t generation = 0;
  };

  Status run_connections(std::int32_t count, bool whole, const std::function<bool(std::int64_t)>& report);
  std::int32_t take_piece();  // -1: none is left
  bool is_running() const { return !is_stopped_.load(std::memory_order_relaxed); }
  void stop_with(Error error);
  SharedTarget target();
  // A new target, unless another connection has asked for one since `generation`.
  Status renew_target(HubClient& client, std::int32_t generation);

  const HubSettings& settings_;
  const HubName& name_;
  const std::string& commit_;
  const HubFile& file_;
  PartialFile& partial_;

  std::atomic<bool> is_stopped_ = false;
  std::atomic<bool> whole_files_only_ = false;  // the server ignores ranges
  std::mutex mutex_;
  std::condition_variable ended_;
  // Guarded by mutex_.
  std::int32_t next_piece_ = 0;
  std::int32_t num_running_ = 0;
  SharedTarget target_;
  Status result_;
};

}  // namespace kvasir::store
