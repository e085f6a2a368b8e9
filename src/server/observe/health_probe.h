// Asks a running server whether it takes requests, as containers and scripts want to know.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::server::observe {

struct ServerAddress {
  bool tls = false;
  std::string host;
  std::uint16_t port = 0;
};

// http://HOST[:PORT] or https://, an IPv6 address in brackets, nothing behind it. Error: kUsage.
Result<ServerAddress> parse_server_url(std::string_view url);

struct HealthAnswer {
  int status = 0;  // of HTTP: 200 when requests are taken, 503 when not
  std::string body;
};

// GET /health/ready. A certificate is not verified: nothing secret is sent, and a server that is asked on
// loopback has one for another name. Error: kUnavailable, when no answer came within `patience`.
Result<HealthAnswer> ask_health(const ServerAddress& address, std::chrono::milliseconds patience);

}  // namespace kvasir::server::observe
