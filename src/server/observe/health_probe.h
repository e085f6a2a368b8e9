// Asks a running server: whether it takes requests, as containers and scripts want to know, and what its verbs need.
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

struct ServerAnswer {
  int status = 0;  // of HTTP
  std::string body;
};

// GET /health/ready: 200 when requests are taken, 503 when not. A certificate is not verified: nothing secret is sent,
// and a server that is asked on loopback has one for another name. Error: kUnavailable, when no answer came in time.
Result<ServerAnswer> ask_health(const ServerAddress& address, std::chrono::milliseconds timeout);

struct ServerQuestion {
  std::string_view method = "GET";
  std::string path;
  std::string body = {};     // JSON
  std::string api_key = {};  // goes only to a server whose certificate is verified, or over plain HTTP; empty: none
};
// Error: kUnavailable, when no answer came in time.
Result<ServerAnswer> ask_server(const ServerAddress& address, const ServerQuestion& question,
                                std::chrono::milliseconds timeout);

}  // namespace kvasir::server::observe
