#include "cli/blocked_signals.h"

#include <pthread.h>
#include <time.h>

#include <cerrno>

namespace kvasir::cli {

namespace {

bool is_ignored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

BlockedSignals::BlockedSignals(std::initializer_list<int> signals) {
  ::sigemptyset(&blocked_);
  for (int signal : signals) {
    // Blocked it would arrive all the same.
    if (signal != SIGHUP || !is_ignored(signal)) ::sigaddset(&blocked_, signal);
  }
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
