#include "server/stored/store_thread.h"

#include <exception>
#include <utility>

#include "base/process_memory.h"

namespace kvasir::server::stored {
namespace {

constexpr std::size_t kMaxWaitingTasks = 1024;

}  // namespace

StoreThread::StoreThread(std::unique_ptr<ObjectStore> store) : store_(std::move(store)) {
  thread_ = std::thread([this] { run(); });
}

StoreThread::~StoreThread() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StoreThread::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

bool StoreThread::is_behind() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size() > kMaxWaitingTasks;
}

void StoreThread::run() {
  claim_arena();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_closing_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task(*store_);
    } catch (const std::exception&) {
      // Out of memory: what the task holds is destroyed, and its request is answered by its writer's end.
    }
    task = nullptr;
    lock.lock();
  }
}

}  // namespace kvasir::server::stored
