#include "cli/systemd_watchdog.h"

namespace kvasir::cli {

void SystemdWatchdog::beat() {
  if (!manager_.watchdog() || Clock::now() < next_round_) return;
  if (num_missing_ && *num_missing_ > 0) return;
  if (num_missing_) manager_.alive();
  next_round_ = num_missing_ ? Clock::now() + *manager_.watchdog() / 4 : Clock::now();
  num_missing_ = std::make_shared<std::atomic<int>>(2);
  engine_.inspect([missing = num_missing_](const EngineSnapshot&) { --*missing; });
  server_.ping([missing = num_missing_] { --*missing; });
}

}  // namespace kvasir::cli
