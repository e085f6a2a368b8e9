// gRPC on a port of its own: the service kvasir.v1.Kvasir (proto/kvasir/v1/kvasir.proto), health and
// reflection.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kvasir/result.h"
#include "server/http/session_context.h"

namespace kvasir::server::carriers {

struct GrpcConfig {
  std::string host;
  std::uint16_t port = 0;            // 0: any free one
  std::string tls_certificate_file;  // PEM; empty: no TLS
  std::string tls_key_file;
  std::function<void(std::string_view line)> warn;  // of a certificate that cannot be used any more
};

// Each call is a request to a path of the HTTP API, so that routes, limits, keys, metrics and the log are
// one. Connections count among the server's. Health and reflection ask for no key: they say what docs/API.md
// says.
//
// Thread safety: open(), start() and shut_down() from one thread, one after another.
class GrpcPort {
 public:
  // Binds the port; answers begin with start(). `io` and `context` outlive it, and io runs until shut_down()
  // has returned. Errors: kUsage (the host; a build without gRPC), kMachine (the port is in use or not
  // permitted).
  static Result<std::unique_ptr<GrpcPort>> open(const GrpcConfig& config, boost::asio::io_context& io,
                                                const http::SessionContext& context);

  virtual ~GrpcPort() = default;

  virtual std::uint16_t port() const = 0;
  virtual void start() = 0;
  // Health says that no more calls are served; they are answered as the engine answers.
  virtual void begin_drain() = 0;
  // Cancels what still runs and closes all connections.
  virtual void shut_down() = 0;
};

}  // namespace kvasir::server::carriers
