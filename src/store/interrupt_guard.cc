#include "store/interrupt_guard.h"

#include <pthread.h>
#include <time.h>

namespace kvasir::store {

InterruptGuard::InterruptGuard() {
  ::sigemptyset(&watched_);
  ::sigaddset(&watched_, SIGINT);
  ::sigaddset(&watched_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &watched_, &previous_mask_);
}

InterruptGuard::~InterruptGuard() { ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr); }

bool InterruptGuard::interrupted() {
  const timespec no_wait = {0, 0};
  while (::sigtimedwait(&watched_, nullptr, &no_wait) > 0) interrupted_ = true;
  return interrupted_;
}

}  // namespace kvasir::store
