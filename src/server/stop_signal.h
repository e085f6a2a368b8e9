// How a signal handler tells the server to stop.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace kvasir::server {

// A counter that a signal handler may raise and one thread waits for.
class StopSignal {
 public:
  StopSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}
  ~StopSignal() {
    if (fd_ >= 0) close(fd_);
  }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool valid() const { return fd_ >= 0; }
  // Async-signal-safe.
  void raise() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(fd_, &one, sizeof one);
  }
  // Takes one raise, waiting for it.
  void wait() {
    std::uint64_t one = 0;
    while (read(fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

 private:
  int fd_;
};

}  // namespace kvasir::server
