// Whether the server still gets somewhere, for systemd's watchdog.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "cli/service_manager.h"
#include "kvasir/engine.h"
#include "server/server.h"

namespace kvasir::cli {

// Tells the service manager that the server is alive each time both the engine's thread, between two steps,
// and a thread of connections have answered. So a step that never ends, or connections that nobody serves any
// more, let the watchdog bite, and a thread that merely sleeps beside them does not stop it.
//
// Thread safety: none.
class SystemdWatchdog {
 public:
  // Borrows all three. Without a watchdog it asks nobody.
  SystemdWatchdog(Engine& engine, server::Server& server, ServiceManager& manager)
      : engine_(engine), server_(server), manager_(manager) {}

  // To be called far more often than the watchdog's time.
  void beat();

 private:
  using Clock = std::chrono::steady_clock;

  Engine& engine_;
  server::Server& server_;
  ServiceManager& manager_;
  std::shared_ptr<std::atomic<int>> num_missing_;  // answers of the round that was asked last
  Clock::time_point next_round_;
};

}  // namespace kvasir::cli
