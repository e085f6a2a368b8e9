// The thread that the stored objects have, so that no connection and no engine waits for a disk.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "server/stored/object_store.h"

namespace kvasir::server::stored {

// Tasks run one after another, in the order they came: what a task stores is there for the next.
//
// Thread safety: any thread may post.
class StoreThread {
 public:
  using Task = std::function<void(ObjectStore& store)>;

  explicit StoreThread(std::unique_ptr<ObjectStore> store);
  // Runs what was posted.
  ~StoreThread();
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  void post(Task task);
  // So many tasks wait that nothing new should begin: the disk is slower than the requests.
  bool is_behind() const;

 private:
  void run();

  const std::unique_ptr<ObjectStore> store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;   // guarded
  bool is_closing_ = false;  // guarded
  std::thread thread_;
};

}  // namespace kvasir::server::stored
