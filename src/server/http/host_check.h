// Keeps web pages away from a server that only this machine may reach.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/http/cors.h"
#include "server/http/message.h"

namespace kvasir::server::http {

// A page from anywhere can make a browser on this machine ask 127.0.0.1, under a name of its own that it lets
// point there (DNS rebinding) or across origins. So a server that listens on loopback answers only requests
// whose Host is a loopback name or address, or one that was allowed, and whose Origin, if there is one, is
// that host itself or one that CORS allows.
//
// Thread safety: immutable once it was told what the server listens on.
class HostCheck {
 public:
  // `cors` is borrowed.
  HostCheck(std::vector<std::string> allowed_hosts, const Cors& cors)
      : allowed_hosts_(std::move(allowed_hosts)), cors_(cors) {}

  // Whether only this machine reaches the server: else there is nothing to check.
  void set_loopback(bool is_loopback) { is_loopback_ = is_loopback; }
  // Error: 403.
  ApiStatus check(const Request& request) const;
  // The Origin alone, wherever the server listens: of what browsers send to others without asking first.
  // Error: 403.
  ApiStatus check_page(const Request& request) const;

 private:
  bool allows(std::string_view host) const;

  bool is_loopback_ = true;
  const std::vector<std::string> allowed_hosts_;
  const Cors& cors_;
};

}  // namespace kvasir::server::http
