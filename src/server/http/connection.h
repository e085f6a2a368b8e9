// A client's socket, with TLS or without.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace kvasir::server::http {

// Closing at once while the client still sends would reset the connection and may take what it has not read
// yet with it (RFC 9112, 9.6): so much and so long is read on and thrown away.
inline constexpr std::size_t kMaxLingerBytes = 32 << 20;
inline constexpr std::chrono::seconds kLingerTime{2};

// Calls back when the socket has failed or the peer is gone in both directions: an urgent byte is no reason.
// Requires: the socket lives until then.
void wait_until_failed(boost::asio::ip::tcp::socket& socket,
                       std::function<void(const boost::system::error_code&)> done);

// Thread safety: everything runs on the socket's executor, a strand. One read and one write may be under way
// at once; their buffers outlive them. Handlers are called once, never from within the call that takes them.
class Connection {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Done = std::function<void(const boost::system::error_code&)>;
  using Moved = std::function<void(const boost::system::error_code&, std::size_t num_bytes)>;

  // `tls` null: none. A connection that has begun with a context keeps it.
  Connection(Socket socket, boost::asio::ssl::context* tls);

  boost::asio::any_io_executor executor() { return socket().get_executor(); }
  bool is_secure() const { return secure_ != nullptr; }

  // Before anything else where it is secure.
  void handshake(Done done);
  // Whether this error of a handshake means that the client speaks HTTP without TLS. Then the connection goes
  // on without TLS, so that the client can be told; the bytes it has sent are lost.
  bool falls_back(const boost::system::error_code& error);
  void read_some(boost::asio::mutable_buffer buffer, Moved moved);
  void write_some(boost::asio::const_buffer buffer, Moved moved);
  // Until the socket fails while nothing is read from it.
  void wait_for_error(Done done);
  void send_at_once();  // small pieces are not held back for more
  // At once and as far as it goes, before a close(). Not with TLS, which takes memory.
  void send_last(std::string_view bytes);
  // No more will be written, and with TLS the client is told. Bytes that still arrive may be read to be
  // thrown away: they are not deciphered any more. Lives until `done` is called.
  void end_sending(Done done);
  // Operations under way end with operation_aborted, or with what they have done.
  void cancel();
  void close();

 private:
  boost::system::error_code shut_down_sending();
  Socket& socket() { return is_secure() ? secure_->next_layer() : plain_; }

  Socket plain_;  // moved into secure_ where that is
  std::unique_ptr<boost::asio::ssl::stream<Socket>> secure_;
  bool has_ended_sending_ = false;
};

}  // namespace kvasir::server::http
