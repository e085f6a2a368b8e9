#include "cli/blocked_signals.h"

#include <pthread.h>
#include <time.h>

#include <cerrno>

namespace kvasir::cli {

BlockedSignals::BlockedSignals(std::initializer_list<int> signals) {
  ::sigemptyset(&blocked_);
  for (int signal : signals) ::sigaddset(&blocked_, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked_, &previous_mask_);
}

BlockedSignals::~BlockedSignals() {
  while (take()) continue;
  ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

std::optional<int> BlockedSignals::take(std::chrono::milliseconds patience) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const timespec wait = {.tv_sec = seconds.count(),
                         .tv_nsec = std::chrono::nanoseconds(patience - seconds).count()};
  int signal = 0;
  do {
    signal = ::sigtimedwait(&blocked_, nullptr, &wait);
  } while (signal < 0 && errno == EINTR);
  return signal > 0 ? std::optional<int>(signal) : std::nullopt;
}

}  // namespace kvasir::cli
