// Ctrl-C as the wish to stop, remembered.
#pragma once

#include <csignal>
#include <functional>

#include "cli/blocked_signals.h"
#include "cli/verb.h"

namespace kvasir::cli {

// While it lives, SIGINT, SIGTERM and SIGHUP wait until the work asks; what is finished by then is kept and
// reported. Make it before the first thread. Not thread-safe: the thread that made it asks.
class Interruption {
 public:
  bool requested() { return requested_ = requested_ || signals_.take(); }
  // Whether to go on, for work that asks; borrows this.
  std::function<bool()> keep_going() {
    return [this] { return !requested(); };
  }
  // The exit code of a command that kept its results so far: kExitInterrupted when it was asked to stop.
  int exit_code() const { return requested_ ? kExitInterrupted : kExitDone; }
  BlockedSignals& signals() { return signals_; }

 private:
  BlockedSignals signals_{SIGINT, SIGTERM, SIGHUP};
  bool requested_ = false;
};

}  // namespace kvasir::cli
