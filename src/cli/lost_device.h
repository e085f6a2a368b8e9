// A lost device, as an engine's thread reports it to the thread that ends the process.
#pragma once

#include <mutex>
#include <string>

namespace kvasir::cli {

// Thread safety: all members may be called by any thread.
class LostDevice {
 public:
  void note(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  // The first reason, in one line; empty while no device is lost.
  std::string reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  mutable std::mutex mutex_;
  std::string reason_;
};

}  // namespace kvasir::cli
