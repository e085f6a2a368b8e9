// Ctrl-C as a question that the work asks, not as a sudden end.
#pragma once

#include <signal.h>

namespace kvasir::store {

// While it lives, SIGINT and SIGTERM to this thread wait until somebody asks for them, so that temporary
// files can be removed first. Use it on the main thread, before other threads start.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();

  // Whether one of the two has arrived since construction.
  bool interrupted();

 private:
  sigset_t watched_;
  sigset_t previous_mask_;
  bool interrupted_ = false;
};

}  // namespace kvasir::store
