// Accepts connections on one address.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <string>

#include "kvasir/result.h"
#include "server/http/session.h"
#include "server/http/tls.h"

namespace kvasir::server {

// Thread safety: open() and start() before the io_context runs; port() any time after open().
class Listener {
 public:
  // All outlive the listener; `tls` null: connections have none.
  Listener(boost::asio::io_context& io, Tls* tls, const SessionContext& context);

  // Binds and listens; port 0 takes a free one. Errors: kUsage (a host that does not resolve), kMachine (the
  // port is in use or not permitted).
  Status open(const std::string& host, std::uint16_t port);
  void start() { accept(); }

  std::uint16_t port() const { return endpoint_.port(); }
  bool is_loopback() const { return endpoint_.address().is_loopback(); }

 private:
  void accept();
  void begin(boost::asio::ip::tcp::socket socket);
  void accept_later();

  boost::asio::io_context& io_;
  Tls* const tls_;
  const SessionContext& context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  boost::asio::ip::tcp::endpoint endpoint_;
};

}  // namespace kvasir::server
