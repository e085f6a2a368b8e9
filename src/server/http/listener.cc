#include "server/http/listener.h"

#include <fmt/format.h>

#include <boost/asio/strand.hpp>
#include <exception>
#include <utility>

namespace kvasir::server::http {

using boost::asio::ip::tcp;
using boost::system::error_code;

Listener::Listener(boost::asio::io_context& io, ConnectionCounter& connections, Begin begin)
    : io_(io), connections_(connections), begin_(std::move(begin)), acceptor_(io), retry_(io) {}

Status Listener::open(const std::string& host, std::uint16_t port) {
  error_code error;
  tcp::resolver resolver(io_);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    const bool has_port = host.contains(':') || host.contains('/');
    const std::string_view advice = has_port ? "; it is an address alone, and the port is --port" : "";
    return make_error(ErrorKind::kUsage, fmt::format("--host {}: {}{}", host, error.message(), advice), "host");
  }
  const tcp::endpoint wanted = found.begin()->endpoint();
  acceptor_.open(wanted.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(wanted, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) endpoint_ = acceptor_.local_endpoint(error);
  if (error == boost::system::errc::address_not_available) {
    return make_error(ErrorKind::kMachine, fmt::format("--host {}: this machine has no such address", host), "host");
  }
  if (error) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("cannot listen on {} port {}: {}", host, port, error.message()), "port");
  }
  return {};
}

void Listener::accept() {
  acceptor_.async_accept(boost::asio::make_strand(io_), [this](const error_code& error, tcp::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    // Out of descriptors, most likely: the queue of the kernel holds the client meanwhile.
    if (error && error != boost::asio::error::connection_aborted) return accept_later();
    try {
      if (!error) admit(std::move(socket));
    } catch (const std::exception&) {
      return accept_later();  // short of memory: this client is gone, the next ones are not
    }
    accept();
  });
}

// A connection too many closes as it is dropped, and so does one that is gone already.
void Listener::admit(tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;
  if (auto slot = connections_.admit(peer.address())) begin_(std::move(socket), *std::move(slot));
}

void Listener::accept_later() {
  retry_.expires_after(std::chrono::milliseconds(100));
  retry_.async_wait([this](const error_code& error) {
    if (!error) accept();
  });
}

}  // namespace kvasir::server::http
