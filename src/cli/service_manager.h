// The messages that systemd gets from a service of Type=notify: that it is ready, that it stops, that it is
// alive.
//
// sd_notify is one datagram with lines NAME=VALUE, a stable protocol (sd_notify(3)); libsystemd would bring
// a library and four more for it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::cli {

// Sends nothing without $NOTIFY_SOCKET.
//
// Thread safety: none.
class ServiceManager {
 public:
  // Reads $NOTIFY_SOCKET, and $WATCHDOG_USEC where $WATCHDOG_PID is this process or not set.
  ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;
  ~ServiceManager();

  // `status` is a line for `systemctl status`.
  void ready(std::string_view status) { send("READY=1\nSTATUS=" + std::string(status)); }
  void stopping() { send("STOPPING=1\nSTATUS=running requests may finish"); }
  void alive() { send("WATCHDOG=1"); }

  // After so long without alive() the service is killed; nothing: it never is.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  void send(std::string_view state) const;

  int socket_ = -1;  // -1: not asked for
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace kvasir::cli
