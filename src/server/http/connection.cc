#include "server/http/connection.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <utility>

#include "base/reserved_work.h"

namespace kvasir::server::http {

using boost::system::error_code;

namespace {

bool has_failed(Connection::Socket& socket) {
  pollfd descriptor{.fd = socket.native_handle(), .events = 0, .revents = 0};
  return ::poll(&descriptor, 1, 0) > 0 && (descriptor.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

void wait_until_failed(Connection::Socket& socket, Connection::Done done) {
  const ReservedWork reserved;
  socket.async_wait(Connection::Socket::wait_error, [&socket, done](const error_code& error) {
    if (error || has_failed(socket)) return done(error);
    char urgent = 0;  // would wake the next wait at once; a failure by then does too
    (void)!::recv(socket.native_handle(), &urgent, 1, MSG_OOB | MSG_DONTWAIT);
    wait_until_failed(socket, done);
  });
}

Connection::Connection(Socket socket, boost::asio::ssl::context* tls) : plain_(std::move(socket)) {
  if (tls != nullptr) secure_ = std::make_unique<boost::asio::ssl::stream<Socket>>(std::move(plain_), *tls);
}

void Connection::handshake(Done done) {
  const ReservedWork reserved;
  secure_->async_handshake(boost::asio::ssl::stream_base::server, std::move(done));
}

bool Connection::falls_back(const error_code& error) {
  if (error.category() != boost::asio::error::get_ssl_category()) return false;
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  if (reason != SSL_R_HTTP_REQUEST && reason != SSL_R_HTTPS_PROXY_REQUEST) return false;
  plain_ = std::move(secure_->next_layer());
  secure_.reset();
  return true;
}

void Connection::read_some(boost::asio::mutable_buffer buffer, Moved moved) {
  const ReservedWork reserved;
  if (!is_secure() || has_ended_sending_) return socket().async_read_some(buffer, std::move(moved));
  secure_->async_read_some(
      buffer, [this, buffer, moved = std::move(moved)](const error_code& error, std::size_t num_bytes) {
        // TLS is over, which a read that was under way takes for the end of what the client sends.
        if (error && has_ended_sending_) return read_some(buffer, moved);
        moved(error, num_bytes);
      });
}

void Connection::write_some(boost::asio::const_buffer buffer, Moved moved) {
  const ReservedWork reserved;
  if (is_secure()) return secure_->async_write_some(buffer, std::move(moved));
  plain_.async_write_some(buffer, std::move(moved));
}

void Connection::wait_for_error(Done done) { wait_until_failed(socket(), std::move(done)); }

void Connection::send_at_once() {
  error_code ignored;
  socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
}

void Connection::send_last(std::string_view bytes) {
  if (is_secure()) return;
  (void)!::send(socket().native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  error_code ignored;
  socket().shutdown(Socket::shutdown_send, ignored);
}

void Connection::end_sending(Done done) {
  const ReservedWork reserved;
  if (!is_secure()) {
    const error_code error = shut_down_sending();
    return boost::asio::post(executor(), [done = std::move(done), error] { done(error); });
  }
  // As if the client had said so too: waiting for it would take more of a body for an error (RFC 8446, 6.1).
  SSL_set_shutdown(secure_->native_handle(), SSL_RECEIVED_SHUTDOWN);
  secure_->async_shutdown([this, done = std::move(done)](const error_code&) {
    const error_code error = shut_down_sending();
    // A read of TLS that is under way may never hear that the client is gone: it goes on without TLS.
    cancel();
    done(error);
  });
}

error_code Connection::shut_down_sending() {
  has_ended_sending_ = true;
  error_code error;
  socket().shutdown(Socket::shutdown_send, error);
  return error;
}

void Connection::cancel() {
  error_code ignored;
  socket().cancel(ignored);
}

void Connection::close() {
  error_code ignored;
  socket().close(ignored);
}

}  // namespace kvasir::server::http
