// Signals as questions that the work asks, not as a sudden end.
#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <optional>

namespace kvasir::cli {

// While it lives, the given signals wait until they are taken; signals that were not taken go with it.
// Threads started meanwhile leave them alone too, so make it before the first thread. A SIGHUP that is
// ignored (nohup) stays so.
//
// Thread safety: one thread makes, asks and destroys it.
class BlockedSignals {
 public:
  explicit BlockedSignals(std::initializer_list<int> signals);
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals();

  // One that has arrived since it was last asked for, or arrives within `patience`.
  std::optional<int> take(std::chrono::milliseconds patience = {});

 private:
  sigset_t blocked_;
  sigset_t previous_mask_;
};

}  // namespace kvasir::cli
