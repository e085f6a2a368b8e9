// Accepts connections on one address.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "kvasir/result.h"
#include "server/http/connection_counter.h"

namespace kvasir::server::http {

// Thread safety: open() and start() before the io_context runs; port() any time after open().
class Listener {
 public:
  // Takes a connection, whose executor is a strand of its own; called by one thread at a time.
  using Begin = std::function<void(boost::asio::ip::tcp::socket socket, ConnectionCounter::Slot slot)>;

  // Both outlive the listener. A connection too many is closed.
  Listener(boost::asio::io_context& io, ConnectionCounter& connections, Begin begin);

  // Binds and listens; port 0 takes a free one. Errors: kUsage (a host that does not resolve), kMachine (the
  // port is in use or not permitted).
  Status open(const std::string& host, std::uint16_t port);
  void start() { accept(); }

  std::uint16_t port() const { return endpoint_.port(); }
  bool is_loopback() const { return endpoint_.address().is_loopback(); }

 private:
  void accept();
  void admit(boost::asio::ip::tcp::socket socket);
  void accept_later();

  boost::asio::io_context& io_;
  ConnectionCounter& connections_;
  const Begin begin_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  boost::asio::ip::tcp::endpoint endpoint_;
};

}  // namespace kvasir::server::http
